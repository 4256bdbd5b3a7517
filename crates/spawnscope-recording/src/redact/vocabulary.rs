//! The word lists that `names` and `values` use. All words are in lower case and have no trailing digits, unless they are whole names.

/// Whether a word is in a list.
pub(super) fn is_among(word: &[u8], list: &[&[u8]]) -> bool {
    list.contains(&word)
}

macro_rules! words {
    ($($word:literal)*) => { &[$($word.as_bytes()),*] };
}

/// Words for passwords, alone or at the end of a longer word.
pub(super) const PASSWORDS: &[&[u8]] = words!(
    "password" "passwords" "passwd" "passphrase" "passwort" "passcode" "passwrd" "pswd" "pwd" "pass"
);

/// Words that make a name secret.
pub(super) const SECRET_WORDS: &[&[u8]] = words!(
    "password" "passwords" "passwd" "passphrase" "passwort" "passcode" "passwrd" "pswd" "pwd" "pass" "pw" "psk" "secret" "token" "key" "keys"
    "credential" "credentials" "cred" "creds" "auth" "cookie" "bearer" "jwt" "mnemonic" "otp" "totp" "pin" "puk" "passkey"
    "apikey" "apitoken" "authkey" "userpwd"
);

/// Word endings that make a name secret.
pub(super) const SECRET_ENDINGS: &[&[u8]] = words!(
    "secret" "token" "apikey" "accesskey" "secretkey" "privatekey" "authkey" "masterkey" "encryptionkey" "licensekey" "sharedkey"
    "sessionkey" "storagekey" "accountkey" "clientkey" "credential" "credentials" "cookie" "bindpw" "rootpw" "userpw" "adminpw"
    "psk" "proxyauth" "basicauth" "httpauth" "masterauth" "activationkey" "subscriptionkey"
);

/// Words before `key` that make the key secret.
pub(super) const SECRET_KEY_WORDS: &[&[u8]] = words!(
    "api" "access" "secret" "auth" "authentication" "authorization" "private" "account" "encryption" "encrypt" "enc" "decryption" "decrypt"
    "master" "license" "licence" "app" "application" "service" "client" "signing" "deploy" "deployment" "storage" "webhook" "shared"
    "session" "user" "admin" "subscription" "integration" "ingest" "ingestion" "activation" "hmac" "jwt" "aes" "crypto" "cipher" "wifi"
    "wep" "wpa" "preshared" "psk" "sas" "consumer" "root" "vault" "stripe" "openai" "instrumentation" "write" "functions" "function"
    "token" "cookie" "unseal" "setup" "recovery" "wallet" "developer" "personal" "bot" "join" "cluster"
);

/// Words before `key` for keys that are not secret.
pub(super) const OTHER_KEY_WORDS: &[&[u8]] = words!(
    "public" "pub" "cache" "sort" "primary" "foreign" "partition" "hash" "group" "order" "hot" "host" "known" "index" "unique" "map" "row"
    "shortcut" "object" "lookup" "dedup" "idempotency" "routing" "translation" "config" "setting" "registry" "default" "recv" "trusted"
    "gpg" "pgp" "sign" "lsign" "local" "send" "search" "export" "import" "delete" "edit" "receive" "fetch" "signed" "range" "tag" "label" "metadata" "json" "dict" "field" "column" "merge" "compose" "leader" "press"
    "arrow" "any" "meta" "restore" "foreignkey" "sortkey" "apt" "rpm" "repo" "archive" "keyboard" "bind" "string" "annotation" "topology"
);

/// Words after a secret word that show that the value only describes the secret.
pub(super) const DESCRIBING_WORDS: &[&[u8]] = words!(
    "file" "files" "path" "paths" "dir" "directory" "folder" "name" "names" "id" "ids" "count" "counts" "type" "types" "kind" "ttl"
    "timeout" "expiry" "expires" "expiration" "expire" "expired" "age" "days" "hours" "minutes" "seconds" "interval" "len" "length" "size"
    "sizes" "limit" "limits" "max" "min" "num" "url" "uri" "endpoint" "host" "hostname" "port" "format" "algorithm" "algorithms" "alg"
    "algo" "cipher" "ciphers" "bits" "bit" "usage" "policy" "policies" "rotation" "header" "headers" "prefix" "suffix" "field" "fields"
    "param" "stdin" "prompt" "env" "var" "variable" "fd" "command" "cmd" "program" "script" "helper" "provider" "providers" "ring" "map"
    "mapping" "maps" "board" "boards" "alias" "arn" "ref" "reference" "method" "methods" "mode" "mech" "mechanism" "mechanisms" "scheme"
    "realm" "user" "username" "users" "issuer" "scope" "scopes" "audience" "store" "manager" "service" "backend" "server" "db" "database"
    "location" "source" "version" "versions" "checking" "check" "verification" "verify" "validation" "validator" "valid" "strength"
    "complexity" "history" "required" "require" "enabled" "disabled" "enable" "disable" "only" "through" "thru" "generator" "generate"
    "rounds" "iterations" "cost" "hint" "help" "reset" "recovery" "change" "expiring" "minlen" "maxlen" "class" "classes" "ratio" "retries"
    "retry" "attempts" "lock" "unlock" "agent" "authority" "authentication" "authentications" "exchange" "spec" "share" "index" "column"
    "pattern" "regex" "template" "budget" "cache" "in" "out" "output" "input" "filename" "basename" "warn" "logfile" "plugin" "args"
    "cert" "ca" "flags" "cflags" "filenames" "error" "errors" "jar" "domain" "domains" "schema" "engine" "status" "state" "ids" "grip" "server" "servers"
);

/// Words at the start of an option that has no secret as its value, or that acts on a stored secret.
pub(super) const SWITCHES: &[&[u8]] = words!(
    "no" "ask" "prompt" "require" "required" "requires" "disable" "enable" "skip" "with" "without" "has" "is" "allow" "show" "print" "list"
    "export" "import" "delete" "remove" "recv" "receive" "send" "edit" "generate" "gen" "create" "verify" "check" "max" "min" "num" "count"
    "public" "pub" "quick" "search" "ignore" "hide" "force" "want" "copy" "stdin"
);

/// Words after a secret word that only say which secret it is.
pub(super) const NEUTRAL: &[&[u8]] = words!(
    "prod" "production" "dev" "development" "staging" "stage" "test" "testing" "qa" "live" "local" "ci" "root" "admin" "db" "new" "old"
    "value" "string" "text" "material" "plain" "plaintext" "raw" "base" "hash" "encrypted" "hashed" "b" "current" "default" "primary" "secondary"
    "backup" "main" "rw" "ro"
);

/// Words before `pass` that show that it is not a password, as in `first-pass` and `compass`.
pub(super) const NO_PASS_WORDS: &[&[u8]] = words!(
    "first" "second" "third" "multi" "one" "two" "single" "render" "all" "low" "high" "band" "fast" "over" "under" "by" "com" "tres" "encom"
    "sur" "sub" "num" "n" "max" "last" "boarding" "opt"
);

/// Words before `token` for tokens of a parser, a language model or a paged list.
pub(super) const NO_TOKEN_WORDS: &[&[u8]] = words!(
    "end" "start" "eos" "bos" "pad" "unk" "sep" "cls" "stop" "begin" "next" "page" "starting" "continuation" "max" "min" "num" "n" "last"
    "first" "per" "prompt" "image" "special"
);

/// Words before `pin` that make the pin secret.
pub(super) const PIN_WORDS: &[&[u8]] =
    words!("so" "user" "card" "sim" "unlock" "new" "old" "default" "set" "login" "token" "device");

/// HTTP headers that contain credentials although `judge` does not find a secret word in their names.
pub(super) const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-amz-security-token",
    "x-api",
    "x-session",
    "x-session-id",
    "x-csrf",
    "x-xsrf",
];

/// Authentication schemes and methods. As the value of a secret name (`--auth=basic`), these words are not secret.
pub(super) const SCHEMES: &[&str] = &[
    "basic",
    "digest",
    "none",
    "ntlm",
    "kerberos",
    "negotiate",
    "oauth",
    "oauth2",
    "token",
    "bearer",
    "ldap",
    "pam",
    "plain",
    "login",
    "md5",
    "iam",
    "key",
    "password",
    "sspi",
    "gssapi",
    "trust",
    "peer",
    "required",
    "optional",
    "any",
    "anyauth",
    "x509",
    "publickey",
    "cookie",
    "scram-sha-256",
    "scram-sha-1",
    "cram-md5",
    "anonymous",
    "jwt",
    "saml",
    "mtls",
    "tls",
    "cert",
    "certificate",
    "aws",
    "gcp",
    "azure",
    "kubernetes",
    "github",
    "approle",
    "userpass",
    "local",
    "file",
    "env",
    "stdin",
    "prompt",
    "default",
    "keyring",
    "secret",
];
