//! Standard streams of every kind, stood in for by other descriptors of the same kind.

use std::io::{Seek as _, Write as _, pipe};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::fs::{OFlags, fcntl_getfl};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Restore, sink_of, source_of};

#[tokio::test]
async fn pipes_are_read_and_written_without_threads_and_get_their_flags_back() {
    let (reader, writer) = pipe().unwrap();
    let flags = [fcntl_getfl(&reader).unwrap(), fcntl_getfl(&writer).unwrap()];
    let restore = (Restore::of(reader.as_fd()), Restore::of(writer.as_fd()));
    let mut source = source_of(reader.as_fd()).unwrap();
    let mut sink = sink_of(writer.as_fd()).unwrap();
    assert!(fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
    assert!(fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK));
    sink.write_all(b"hello").await.unwrap();
    let mut read = [0; 5];
    source.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"hello");
    drop((source, sink));
    drop(restore);
    assert_eq!(
        [fcntl_getfl(&reader).unwrap(), fcntl_getfl(&writer).unwrap()],
        flags
    );
}

#[tokio::test]
async fn one_socket_can_be_both_streams_and_gets_its_flags_back() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let flags = fcntl_getfl(&ours).unwrap();
    let restore = (Restore::of(ours.as_fd()), Restore::of(ours.as_fd()));
    let mut source = source_of(ours.as_fd()).unwrap();
    let mut sink = sink_of(ours.as_fd()).unwrap();
    theirs.write_all(b"in").unwrap();
    let mut read = [0; 2];
    source.read_exact(&mut read).await.unwrap();
    sink.write_all(&read).await.unwrap();
    std::io::Read::read_exact(&mut theirs, &mut read).unwrap();
    assert_eq!(&read, b"in");
    drop((source, sink));
    drop(restore);
    assert_eq!(fcntl_getfl(&ours).unwrap(), flags);
}

#[tokio::test]
async fn files_are_left_alone() {
    let mut file = tempfile::tempfile().unwrap();
    file.rewind().unwrap();
    let flags = fcntl_getfl(&file).unwrap();
    assert!(source_of(file.as_fd()).is_err());
    assert!(sink_of(file.as_fd()).is_err());
    assert_eq!(fcntl_getfl(&file).unwrap(), flags);
}
