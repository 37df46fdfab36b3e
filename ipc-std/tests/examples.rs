//! What the examples say of themselves.

#[test]
fn the_client_over_tokio_is_the_blocking_one_with_await() {
    let blocking = include_str!("../examples/blocking/client.rs");
    let tokio = include_str!("../examples/tokio/client.rs");
    assert!(tokio.matches(".await").count() > 5);
    for (number, (blocking, tokio)) in (1..).zip(blocking.lines().zip(tokio.lines())) {
        assert_eq!(blocking, tokio.replace("async ", "").replace(".await", ""), "in line {number}");
    }
    assert_eq!(blocking.lines().count(), tokio.lines().count());
}
