//! As much of HTTP/1.1 as it takes to ask a server on this machine: one connection, kept alive, one request at a time.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than any answer takes to begin, or to go on, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// How long the body of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Nobody answers at that address.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    /// Asks for `path`: the status, and the body.
    ///
    /// # Errors
    /// The connection broke, or what came is not HTTP.
    pub fn fetch(&mut self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        write!(self.stream.get_mut(), "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)?;
        let (status, length) = self.head()?;
        let mut body = Vec::new();
        self.body(length, |bytes| body.extend_from_slice(bytes))?;
        Ok((status, body))
    }

    /// Sends a document of JSON to `path` and returns the body of the answer.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch); and any status but 200, with what the server said.
    pub fn post(&mut self, path: &str, json: &str) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        self.post_streamed(path, json, |bytes| body.extend_from_slice(bytes))?;
        Ok(body)
    }

    /// [`post`](Self::post), giving each part of the body to `part` as soon as it is there.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn post_streamed(&mut self, path: &str, json: &str, part: impl FnMut(&[u8])) -> io::Result<()> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            json.len()
        );
        // In one piece: the server need not be woken twice.
        self.stream.get_mut().write_all(&[head.as_bytes(), json.as_bytes()].concat())?;
        let (status, length) = self.head()?;
        if status == 200 {
            return self.body(length, part);
        }
        let mut said = Vec::new();
        self.body(length, |bytes| said.extend_from_slice(bytes))?;
        Err(malformed(format!("status {status}: {}", String::from_utf8_lossy(&said))))
    }

    fn head(&mut self) -> io::Result<(u16, Length)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.filter(|_| first.starts_with("HTTP/1.1 "));
        let status = status.ok_or_else(|| malformed(format!("{first:?} is no status line")))?;
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((status, length.ok_or_else(|| malformed("an answer does not say how long it is"))?));
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = value.parse().ok().map(Length::Known),
                ("transfer-encoding", "chunked") => length = Some(Length::Chunked),
                _ => {}
            }
        }
    }

    fn body(&mut self, length: Length, mut part: impl FnMut(&[u8])) -> io::Result<()> {
        let mut bytes = Vec::new();
        if let Length::Known(count) = length {
            bytes.resize(count, 0);
            self.stream.read_exact(&mut bytes)?;
            part(&bytes);
            return Ok(());
        }
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| malformed(format!("{line:?} is no size")))?;
            bytes.resize(size + 2, 0);
            self.stream.read_exact(&mut bytes)?;
            if size == 0 {
                return Ok(());
            }
            part(&bytes[..size]);
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        Ok(line.trim_end().to_owned())
    }
}

fn malformed(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    /// A server that reads one request after the other, to its last byte, and gives these answers.
    fn answering(answers: &'static [&'static str]) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut requests = Vec::new();
            for answer in answers {
                let (mut head, mut length) = (String::new(), 0);
                while !head.ends_with("\r\n\r\n") {
                    let from = head.len();
                    stream.read_line(&mut head).unwrap();
                    if let Some(value) = head[from..].strip_prefix("Content-Length: ") {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                requests.push(head + std::str::from_utf8(&body).unwrap());
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            requests
        });
        (address, server)
    }

    #[test]
    fn several_requests_take_one_connection() {
        let (address, server) = answering(&[
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nwait",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\nA\r\n, two, 3.\n\r\n0\r\n\r\n",
        ]);
        let mut client = Client::connect(address).unwrap();
        assert_eq!(client.fetch("/health").unwrap(), (503, b"wait".to_vec()));
        assert_eq!(client.post("/completion", "{\"a\":1}").unwrap(), b"{}");
        let mut parts = Vec::new();
        client.post_streamed("/completion", "{}", |part| parts.push(part.to_vec())).unwrap();
        assert_eq!(parts, [&b"one"[..], b", two, 3.\n"]);
        let requests = server.join().unwrap();
        assert!(requests[0].starts_with("GET /health HTTP/1.1\r\nHost: 127.0.0.1:"), "{requests:?}");
        assert!(requests[1].ends_with("Content-Length: 7\r\n\r\n{\"a\":1}"), "{requests:?}");
    }

    #[test]
    fn what_is_refused_says_why() {
        let (address, _) = answering(&["HTTP/1.1 400 Bad Request\r\nContent-Length: 8\r\n\r\ntoo long"]);
        let error = Client::connect(address).unwrap().post("/completion", "{}").unwrap_err();
        assert_eq!(error.to_string(), "status 400: too long");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (answer, why) in [
            ("FTP\r\n\r\n", "no status line"),
            ("HTTP/1.1 200 OK\r\n\r\n", "how long"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "no size"),
            ("", "closed"),
        ] {
            let (address, server) = answering(Box::leak(Box::new([answer])));
            let mut client = Client::connect(address).unwrap();
            let error = client.post("/", "{}").map(drop).unwrap_err().to_string();
            assert!(error.contains(why), "{answer:?}: {error}");
            server.join().unwrap();
        }
    }
}
