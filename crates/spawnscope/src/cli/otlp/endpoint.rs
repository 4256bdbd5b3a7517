//! The address and the headers of an OpenTelemetry collector, from the command line or from OpenTelemetry's environment
//! variables.

use anyhow::{Context, Result, bail};
use ureq::http::{HeaderName, HeaderValue, Uri};

use crate::cli::variable;

/// The default address according to the OTLP specification: a collector on this machine.
const DEFAULT_ADDRESS: &str = "http://localhost:4318";

/// The address and the headers of requests. They are checked before the command starts.
#[derive(Debug)]
pub struct Endpoint {
    base: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Endpoint {
    /// Checks an address. If there is none, reads address and headers from OpenTelemetry's environment variables.
    ///
    /// # Errors
    /// When the address or the headers are not valid.
    pub fn from_option(address: Option<&str>) -> Result<Endpoint> {
        if let Some(address) = address {
            return Endpoint::parse(address, "").with_context(|| format!("--otlp {address}"));
        }
        let address = variable("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        let headers = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
        Endpoint::parse(&address, &headers)
            .context("the variables OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS, which --otlp reads")
    }

    /// Returns the address, without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the headers of each request.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    fn parse(address: &str, headers: &str) -> Result<Endpoint> {
        let example = "use http://HOST:PORT, for example http://localhost:4318";
        let uri: Uri = address.parse().ok().with_context(|| format!("not an address: {example}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                bail!(
                    "https is not supported: send to a collector on this machine over http, and let it forward the data"
                );
            }
            _ => bail!("not an HTTP address: {example}"),
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') || uri.query().is_some() || uri.host().is_none_or(str::is_empty) {
            bail!("an address can have only a host, a port and a path: {example}");
        }
        Ok(Endpoint { base: address.trim_end_matches('/').to_owned(), headers: parse_headers(headers)? })
    }
}

/// Parses `NAME=VALUE,NAME=VALUE`. Bytes of a value may be written as `%20`.
fn parse_headers(headers: &str) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let pairs = headers.split(',').filter(|pair| !pair.trim().is_empty());
    // A header may contain a secret, so it is not printed.
    pairs.map(|pair| parse_header(pair).context("the headers are not NAME=VALUE,NAME=VALUE")).collect()
}

fn parse_header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let value: Vec<u8> = percent_encoding::percent_decode_str(value.trim()).collect();
    Some((name.trim().parse().ok()?, HeaderValue::from_bytes(&value).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_address_with_host_port_and_path_is_accepted() {
        for (address, base) in [
            ("http://localhost:4318", "http://localhost:4318"),
            ("http://[::1]:9090/api/v1/otlp/", "http://[::1]:9090/api/v1/otlp"),
        ] {
            assert_eq!(Endpoint::parse(address, "").unwrap().base, base);
        }
        for wrong in [
            "",
            "make",
            "localhost:4318",
            "/tmp/socket",
            "https://collector:4318",
            "grpc://localhost:4317",
            "http://",
            "http://user:secret@localhost",
            "http://localhost/?x=1",
            "http://local host",
        ] {
            assert!(Endpoint::parse(wrong, "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_parsed_and_their_values_are_not_in_errors() {
        let headers = parse_headers("Authorization=Basic%20abc=, x-tenant = 7").unwrap();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("authorization", "Basic abc="), ("x-tenant", "7")]);
        for wrong in ["secret", "a b=c", "a=b%0Ac"] {
            let error = parse_headers(wrong).unwrap_err();
            assert!(!error.to_string().contains(wrong), "{error}");
        }
    }
}
