//! Exchanges.
use core::fmt::Display;

use ipc_proto::{
    Call, Encode, EncodeError, Exchange, ReceiveAdvertise, ReceiveEnvironment, Reply, SendEnvironment, Serve,
    Session, SessionPhase,
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
    Call<'_>, ReceiveAdvertise, ReceiveEnvironment<'_>, SendEnvironment<'_, '_>, Serve<'_>, Reply<'_>,
}

proves! { EXCHANGE:
    Call::command, Call::received, Call::into_buffer,
    ReceiveAdvertise::new, <ReceiveAdvertise as Default>::default, ReceiveAdvertise::bytes, ReceiveAdvertise::finish,
    ReceiveEnvironment::new, ReceiveEnvironment::next_entry, ReceiveEnvironment::into_buffer,
    ReceiveEnvironment::is_finished, SendEnvironment::new, SendEnvironment::announcement,
    Serve::new, Serve::announce, Serve::bytes, Serve::code, Serve::finish,
    answer_untyped, Reply::bytes, Reply::refuse, Reply::refuse_with,
    Session::new, Session::session_id, Session::received, Session::wants_stream, Session::stream_advance,
    Session::stop, Session::stop_step, Session::stop_advance, Session::stop_answer, Session::until, Session::tick,
    Session::abandon, Session::end, <SessionPhase as Display>::fmt,
}

fn answer_untyped(reply: &mut Reply<'_>, payload: &dyn Encode) -> Result<(), EncodeError> {
    reply.answer_untyped(payload)
}
