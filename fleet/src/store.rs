//! Object stores that speak S3's protocol. Address, region and keys come from the environment, as for other programs: AWS_ACCESS_KEY_ID,
//! AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use datafusion::object_store::ObjectStore;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use url::Url;

const SCHEME: &str = "s3://";
/// Maximum time for which a failing request is repeated.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of repetitions of a failing request.
const MAX_RETRIES: usize = 4;

/// Returns the URL of a dataset in an object store, with a slash at the end. `None` if the location is a directory on this machine.
///
/// # Errors
/// When it is a URL with another scheme, or has no bucket.
pub fn url(location: &Path) -> Result<Option<Url>> {
    let Some(text) = location.to_str() else { return Ok(None) };
    if !text.starts_with(SCHEME) {
        if text.contains("://") {
            bail!("{text}: a dataset is a directory, or s3://BUCKET/PREFIX in S3-compatible storage");
        }
        return Ok(None);
    }
    let url = Url::parse(&format!("{}/", text.trim_end_matches('/')));
    match url {
        Ok(url) if url.host_str().is_some_and(|bucket| !bucket.is_empty()) => Ok(Some(url)),
        _ => bail!("{text} has no bucket: a dataset in a store is s3://BUCKET/PREFIX"),
    }
}

/// Opens the store of a URL.
///
/// # Errors
/// When the AWS_* environment variables are missing or wrong.
pub fn open(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let store = AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry).build();
    let store = store.with_context(|| format!("failed to open {url}: check the AWS_* environment variables"))?;
    Ok(Arc::new(store))
}

/// Returns the path of a URL within its store.
///
/// # Errors
/// When it has characters that paths in a store cannot have.
pub fn path(url: &Url) -> Result<object_store::path::Path> {
    object_store::path::Path::from_url_path(url.path()).with_context(|| format!("{url} is not a path in a store"))
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn a_dataset_is_a_directory_or_in_a_bucket() {
        for (text, parsed) in [("fleet/", None), ("s3://b/a/", Some("s3://b/a/")), ("s3://b", Some("s3://b/"))] {
            let url = url(text.as_ref()).expect("a dataset").map(|url| url.to_string());
            assert_eq!(url.as_deref(), parsed);
        }
        for text in ["s3://", "s3:///x", "https://b/a"] {
            assert!(url(text.as_ref()).is_err(), "{text}");
        }
    }
}
