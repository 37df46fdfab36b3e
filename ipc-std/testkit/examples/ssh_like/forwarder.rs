//! The other side of the transport, as `sshd` would be: forwards each connection to the socket of a runtime.
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

/// Starts to forward connections to the socket at `path`; returns the address to connect to.
pub(crate) fn start(path: PathBuf) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            // If the runtime is gone, `tcp` is dropped, which closes the connection.
            let _ = UnixStream::connect(&path).and_then(|runtime| forward(tcp, runtime));
        }
    });
    Ok(address.to_string())
}

fn forward(tcp: TcpStream, runtime: UnixStream) -> io::Result<()> {
    let (mut from_tool, mut to_runtime) = (tcp.try_clone()?, runtime.try_clone()?);
    thread::spawn(move || {
        let _ = unframe(&mut from_tool, &mut to_runtime);
        to_runtime.shutdown(Shutdown::Write)
    });
    let (mut from_runtime, mut to_tool) = (runtime, tcp);
    thread::spawn(move || {
        let _ = frame(&mut from_runtime, &mut to_tool);
        // The tool is gone, or everything is sent: close both connections.
        let _ = from_runtime.shutdown(Shutdown::Both);
        to_tool.shutdown(Shutdown::Both)
    });
    Ok(())
}

fn unframe(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut frame = [0; 0xffff];
    loop {
        let mut len = [0; 2];
        from.read_exact(&mut len)?;
        let frame = &mut frame[..u16::from_be_bytes(len).into()];
        from.read_exact(frame)?;
        to.write_all(frame)?;
    }
}

fn frame(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buf = [0; 0xffff];
    loop {
        let n = from.read(&mut buf)?;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes())?;
        to.write_all(&buf[..n])?;
    }
}
