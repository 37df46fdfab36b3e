//! The functions of exchanges, of [`Session`] and of [`BusyBackoff`].
use core::error::Error;
use core::fmt::Display;
use core::task::{Context, Poll};

use ipc_proto::{
    BusyBackoff, Encode, EncodeError, Exchange, Observe, PollError, ProtocolError, ReceiveAdvertise,
    ReceiveEnvironment, Reply, SendEnvironment, Serve, Session, SessionPhase, Step, SuspendedCall,
    SuspendedEnvironment, SuspendedReply, SuspendedServe, Untyped, UntypedCall, poll_exchange, types::Status,
};

use crate::{Address, addresses, proves, proves_each};

const fn exchange<E: Exchange>() -> [Address; 5] {
    addresses! {
        <E as Exchange>::step, <E as Exchange>::advance, <E as Exchange>::supply,
        <&mut E as Exchange>::step, <&mut E as Exchange>::advance,
    }
}
proves_each! { EXCHANGES: exchange,
    UntypedCall<'_>, ReceiveAdvertise, ReceiveEnvironment<'_>, SendEnvironment<'_, '_>, Serve<'_>, Reply<'_>,
}

proves! { EXCHANGE:
    poll, <PollError<ProtocolError> as Display>::fmt, <PollError<ProtocolError> as Error>::source,
    UntypedCall::untyped, UntypedCall::encoded, UntypedCall::finish_as::<Status>, UntypedCall::finish_response, UntypedCall::command, UntypedCall::received,
    UntypedCall::suspend, SuspendedCall::<Untyped>::resume, <SuspendedCall<Untyped> as Clone>::clone,
    ReceiveAdvertise::new, <ReceiveAdvertise as Default>::default, ReceiveAdvertise::bytes, ReceiveAdvertise::finish,
    ReceiveEnvironment::new, ReceiveEnvironment::next_entry, ReceiveEnvironment::suspend,
    SuspendedEnvironment::resume,
    ReceiveEnvironment::is_finished, SendEnvironment::new, SendEnvironment::announcement,
    Serve::new, Serve::is_untouched, Serve::bytes, Serve::code, Serve::finish,
    Serve::suspend, SuspendedServe::resume, Reply::suspend, SuspendedReply::resume,
    answer_untyped, Reply::bytes, Reply::refuse, Reply::refuse_with,
    Observe::<&mut [u8]>::new, Observe::<&mut [u8]>::supply, Observe::<&mut [u8]>::unfinished,
    Session::new, Session::session_id, Session::received, Session::wants_stream, Session::stream_advance,
    Session::limit_silence, Session::delay_stop, Session::send_stop,
    Session::stop, Session::limit_connecting, Session::is_stopping, Session::stop_failed, Session::stop_step, Session::stop_advance, Session::stop_supply, Session::stop_answer, Session::until, Session::tick,
    BusyBackoff::new, <BusyBackoff as Default>::default, BusyBackoff::next,
    Session::abandon, Session::end, <SessionPhase as Display>::fmt,
}

type Transfer<'t> = dyn FnMut(&mut Context<'_>, Step<'_>) -> Poll<Result<usize, ProtocolError>> + 't;

fn poll(
    exchange: &mut dyn Exchange,
    context: &mut Context<'_>,
    transfer: &mut Transfer<'_>,
) -> Poll<Result<(), PollError<ProtocolError>>> {
    poll_exchange(exchange, context, transfer)
}

fn answer_untyped(reply: &mut Reply<'_>, payload: &dyn Encode) -> Result<(), EncodeError> {
    reply.answer_untyped(payload)
}
