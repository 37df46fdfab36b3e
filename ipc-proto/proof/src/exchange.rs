//! The functions of exchanges.
use core::fmt::Display;

use ipc_proto::{
    BusyBackoff, Encode, EncodeError, Exchange, ReceiveAdvertise, ReceiveEnvironment, Reply, SendEnvironment,
    Serve, Session, SessionPhase, SuspendedCall, SuspendedEnvironment, SuspendedReply, SuspendedServe,
    Untyped, UntypedCall, types::Status,
};

use crate::{Address, proves, proves_each};

const fn exchange<E: Exchange>() -> [Address; 4] {
    [
        Address(<E as Exchange>::step as *const ()),
        Address(<E as Exchange>::advance as *const ()),
        Address(<&mut E as Exchange>::step as *const ()),
        Address(<&mut E as Exchange>::advance as *const ()),
    ]
}
proves_each! { EXCHANGES: exchange,
    UntypedCall<'_>, ReceiveAdvertise, ReceiveEnvironment<'_>, SendEnvironment<'_, '_>, Serve<'_>, Reply<'_>,
}

proves! { EXCHANGE:
    UntypedCall::untyped, UntypedCall::encoded, UntypedCall::finish_as::<Status>, UntypedCall::command, UntypedCall::received,
    UntypedCall::suspend, SuspendedCall::<Untyped>::resume, <SuspendedCall<Untyped> as Clone>::clone,
    ReceiveAdvertise::new, <ReceiveAdvertise as Default>::default, ReceiveAdvertise::bytes, ReceiveAdvertise::finish,
    ReceiveEnvironment::new, ReceiveEnvironment::next_entry, ReceiveEnvironment::suspend,
    SuspendedEnvironment::resume,
    ReceiveEnvironment::is_finished, SendEnvironment::new, SendEnvironment::announcement,
    Serve::new, Serve::is_untouched, Serve::bytes, Serve::code, Serve::finish,
    Serve::suspend, SuspendedServe::resume, Reply::suspend, SuspendedReply::resume,
    answer_untyped, Reply::bytes, Reply::refuse, Reply::refuse_with,
    Session::new, Session::session_id, Session::received, Session::wants_stream, Session::stream_advance,
    Session::stop, Session::limit_connecting, Session::is_stopping, Session::stop_failed, Session::stop_step, Session::stop_advance, Session::stop_answer, Session::until, Session::tick,
    BusyBackoff::new, <BusyBackoff as Default>::default, BusyBackoff::next,
    Session::abandon, Session::end, <SessionPhase as Display>::fmt,
}

fn answer_untyped(reply: &mut Reply<'_>, payload: &dyn Encode) -> Result<(), EncodeError> {
    reply.answer_untyped(payload)
}
