//! Functions of languages that do the work of small programs, so that code need not launch them. Shells have a table of their own, in
//! `rules/builtin`.

use crate::patterns::runtimes::Runtime;
use crate::patterns::words::Words;

/// Programs, and for each language the functions that do the same.
const TABLE: &[(Words, &str)] = &[
    (
        Words("date"),
        "Python: datetime.now().strftime(...), time.time() | Perl: use POSIX 'strftime'; strftime(...), time | Ruby: Time.now.strftime(...) | \
         Node.js: new Date().toISOString(), Date.now() | PHP: date(...), time() | Lua: os.date(...), os.time() | Tcl: clock format [clock seconds] | \
         awk: strftime(...), systime() (gawk, mawk) | Go: time.Now().Format(...) | Rust: SystemTime::now(), or the crate chrono | \
         Java: LocalDateTime.now() | Emacs Lisp: format-time-string | CMake: string(TIMESTAMP variable ...)",
    ),
    (
        Words("basename dirname readlink realpath"),
        "fish: path basename, path dirname, path resolve | Python: os.path.basename, dirname, realpath, or pathlib | Perl: File::Basename, Cwd::abs_path | Ruby: File.basename, dirname, realpath | \
         Node.js: path.basename, dirname, fs.realpathSync | PHP: basename(), dirname(), realpath() | Lua: path:match('[^/]+$'), path:match('(.*)/') | \
         Tcl: file tail, file dirname, file normalize | awk: sub(/.*\\//, \"\", name) | Go: filepath.Base, Dir, EvalSymlinks | \
         Rust: Path::file_name, parent, canonicalize | Java: Path.getFileName, getParent, toRealPath | \
         Emacs Lisp: file-name-nondirectory, file-name-directory, file-truename | CMake: cmake_path() or get_filename_component() | \
         make: $(notdir ...), $(dir ...), $(realpath ...)",
    ),
    (
        Words("mkdir rmdir"),
        "Python: os.makedirs(path, exist_ok=True), os.rmdir | Perl: File::Path::make_path, rmdir | Ruby: FileUtils.mkdir_p, Dir.rmdir | \
         Node.js: fs.mkdirSync(path, {recursive: true}), rmdirSync | PHP: mkdir(path, 0777, true), rmdir() | Lua: lfs.mkdir, or one mkdir for all | \
         Tcl: file mkdir, file delete | Go: os.MkdirAll, os.Remove | Rust: fs::create_dir_all, remove_dir | Java: Files.createDirectories, delete | \
         Emacs Lisp: make-directory, delete-directory | CMake: file(MAKE_DIRECTORY ...)",
    ),
    (
        Words("cp install"),
        "Python: shutil.copy2, copytree | Perl: File::Copy::copy | Ruby: FileUtils.cp, cp_r | Node.js: fs.copyFileSync, cpSync | PHP: copy() | \
         Lua: io.open(from):read('a') and io.open(to, 'w'):write(...) | Tcl: file copy | Go: io.Copy | Rust: fs::copy | Java: Files.copy | \
         Emacs Lisp: copy-file | CMake: file(COPY ...), configure_file(... COPYONLY)",
    ),
    (
        Words("mv"),
        "Python: os.rename, shutil.move | Perl: File::Copy::move | Ruby: FileUtils.mv | Node.js: fs.renameSync | PHP: rename() | Lua: os.rename | \
         Tcl: file rename | Go: os.Rename | Rust: fs::rename | Java: Files.move | Emacs Lisp: rename-file | CMake: file(RENAME ...)",
    ),
    (
        Words("rm unlink"),
        "Python: os.unlink, shutil.rmtree | Perl: unlink, File::Path::remove_tree | Ruby: FileUtils.rm_f, rm_rf | Node.js: fs.rmSync | PHP: unlink() | \
         Lua: os.remove | Tcl: file delete | Go: os.Remove, RemoveAll | Rust: fs::remove_file, remove_dir_all | Java: Files.deleteIfExists | \
         Emacs Lisp: delete-file | CMake: file(REMOVE ...)",
    ),
    (
        Words("ln chmod chown touch stat test [ ls find"),
        "Python: os.symlink, chmod, utime, stat, scandir, pathlib | Perl: symlink, chmod, utime, stat, -e, opendir, File::Find | \
         Ruby: File.symlink, chmod, stat, exist?, FileUtils.touch, Dir.glob | \
         Node.js: fs.symlinkSync, chmodSync, utimesSync, statSync, existsSync, readdirSync | \
         PHP: symlink(), chmod(), touch(), stat(), file_exists(), glob() | Lua: lfs.attributes, lfs.touch, lfs.dir | \
         Tcl: file link, file attributes, file mtime, file exists, glob | Go: os.Symlink, Chmod, Chtimes, Stat, filepath.WalkDir | \
         Rust: fs::metadata, set_permissions, read_dir | Java: Files.createSymbolicLink, setPosixFilePermissions, exists, walk | \
         Emacs Lisp: make-symbolic-link, set-file-modes, file-exists-p, directory-files | CMake: file(GLOB ...), file(CREATE_LINK ...), if(EXISTS ...) | \
         make: $(wildcard ...)",
    ),
    (
        Words("cat head tail wc"),
        "fish: read, string collect <FILE | Python: open(path).read() | Perl: open, read, <$file> | Ruby: File.read, File.foreach | Node.js: fs.readFileSync | PHP: file_get_contents() | \
         Lua: io.open(path):read('a'), io.lines | Tcl: open, read, gets | awk: getline line < file | Go: os.ReadFile | Rust: fs::read_to_string | \
         Java: Files.readString | Emacs Lisp: insert-file-contents | CMake: file(READ ...), file(STRINGS ...) | make: $(file <FILE) (GNU make 4.2)",
    ),
    (
        Words("echo printf"),
        "Python: print, write | Perl: print, printf | Ruby: puts, printf | Node.js: fs.writeFileSync | PHP: echo, file_put_contents() | Lua: io.write | \
         Tcl: puts | awk: print, printf | Go: fmt.Fprintln | Rust: writeln! | Java: Files.writeString | Emacs Lisp: insert, write-region | \
         CMake: file(WRITE ...), file(APPEND ...) | make: $(info ...), $(file >FILE,...)",
    ),
    (
        Words("sed tr cut awk gawk mawk grep egrep fgrep sort uniq rev fold paste"),
        "fish: string replace, string split, string match, string upper | Python: re, str.replace, str.split, sorted | Perl: s///, tr///, split, grep, sort | Ruby: gsub, tr, split, grep, sort | \
         Node.js: replace, split, filter, sort | PHP: preg_replace(), str_replace(), explode(), sort() | Lua: string.gsub, string.match, table.sort | \
         Tcl: regsub, string map, split, lsort | awk: gsub, match, split, substr | Go: strings, regexp, sort | Rust: str::replace, split, the crate regex | \
         Java: String.replaceAll, split, sorted() | Emacs Lisp: replace-regexp-in-string, split-string, sort | \
         CMake: string(REGEX REPLACE ...), string(REPLACE ...), list(SORT ...) | make: $(subst ...), $(patsubst ...), $(filter ...), $(sort ...)",
    ),
    (
        Words("expr bc dc seq factor"),
        "fish: math | Python: arithmetic of the language, decimal | Perl: arithmetic of the language, Math::BigInt | Ruby: arithmetic of the language | \
         Node.js: arithmetic of the language, BigInt | PHP: arithmetic of the language | Lua: arithmetic of the language | Tcl: expr | \
         awk: arithmetic of the language | Go: arithmetic of the language, math/big | Rust: arithmetic of the language | \
         Java: arithmetic of the language, BigDecimal | Emacs Lisp: arithmetic of the language | CMake: math(EXPR ...)",
    ),
    (
        Words("md5sum sha1sum sha256sum sha512sum cksum b2sum"),
        "Python: hashlib | Perl: Digest::MD5, Digest::SHA | Ruby: Digest | Node.js: crypto.createHash | PHP: hash_file() | Tcl: md5, sha256 (tcllib) | \
         Go: crypto/sha256 | Rust: the crate sha2 | Java: MessageDigest | Emacs Lisp: secure-hash | CMake: file(SHA256 ...)",
    ),
    (
        Words("hostname uname id whoami nproc pwd env printenv getconf arch"),
        "Python: platform, os.getuid(), os.getcwd(), os.environ, os.cpu_count() | Perl: Sys::Hostname, POSIX::uname, $<, Cwd, %ENV | \
         Ruby: Socket.gethostname, Etc, Dir.pwd, ENV | Node.js: os.hostname(), os.userInfo(), os.cpus(), process.cwd(), process.env | \
         PHP: gethostname(), php_uname(), posix_getuid(), getcwd(), getenv() | Lua: os.getenv | Tcl: info hostname, $tcl_platform, pwd, $env | \
         awk: ENVIRON | Go: os.Hostname, user.Current, os.Getwd, os.Getenv, runtime.NumCPU | Rust: std::env | \
         Java: System.getProperty, System.getenv | Emacs Lisp: system-name, user-login-name, default-directory, getenv | \
         CMake: cmake_host_system_information(), $ENV{...} | make: $(CURDIR), environment variables",
    ),
    (
        Words("which command"),
        "fish: command -v, type -q | Python: shutil.which | Perl: File::Which | Ruby: ENV['PATH'].split(':') and File.executable? | Node.js: the package which | Tcl: auto_execok | \
         Go: exec.LookPath | Emacs Lisp: executable-find | CMake: find_program()",
    ),
    (
        Words("sleep"),
        "Python: time.sleep | Perl: select(undef, undef, undef, SECONDS) | Ruby: sleep | Node.js: setTimeout | PHP: usleep() | Tcl: after | \
         Go: time.Sleep | Rust: thread::sleep | Java: Thread.sleep | Emacs Lisp: sleep-for",
    ),
    (
        Words("gzip gunzip zcat bzip2 xz tar zip unzip zstd"),
        "Python: gzip, bz2, lzma, tarfile, zipfile | Perl: IO::Compress::Gzip, Archive::Tar | Ruby: Zlib, Gem::Package | Node.js: zlib | \
         PHP: gzencode(), ZipArchive | Go: compress/gzip, archive/tar | Rust: the crates flate2 and tar | Java: GZIPOutputStream | \
         CMake: file(ARCHIVE_CREATE ...)",
    ),
    (
        Words("curl wget"),
        "Python: urllib.request, or requests.Session, which keeps the connection | Perl: HTTP::Tiny | Ruby: Net::HTTP.start, which keeps the connection | \
         Node.js: fetch | PHP: curl_init() | Go: net/http | Rust: the crate ureq | Java: java.net.http.HttpClient | Emacs Lisp: url-retrieve-synchronously | \
         CMake: file(DOWNLOAD ...)",
    ),
    (
        Words("jq"),
        "Python: json | Perl: JSON::PP | Ruby: JSON | Node.js: JSON.parse | PHP: json_decode() | Go: encoding/json | Rust: the crate serde_json | \
         Emacs Lisp: json-parse-string | CMake: string(JSON ...)",
    ),
    (
        Words("sqlite3"),
        "Python: sqlite3 | Perl: DBD::SQLite | Ruby: the gem sqlite3 | Node.js: node:sqlite | PHP: SQLite3 | Tcl: package require sqlite3 | Emacs Lisp: sqlite-open",
    ),
    (
        Words("openssl"),
        "Python: hashlib, secrets, ssl, cryptography | Perl: Digest::SHA, Crypt::OpenSSL::X509 | Ruby: OpenSSL | Node.js: crypto | PHP: openssl_*() | \
         Go: crypto/x509, crypto/sha256 | Java: java.security",
    ),
    (
        Words("git"),
        "Python: pygit2, dulwich, or git cat-file --batch as a coprocess | Ruby: rugged | Node.js: isomorphic-git, nodegit | Go: go-git | Rust: gix, git2 | \
         Java: JGit",
    ),
];

/// Returns the functions of a language that do the work of a program.
pub(super) fn functions(runtime: Runtime, program: &[u8]) -> Option<&'static str> {
    let (_, languages) = TABLE.iter().find(|(programs, _)| programs.contains(program))?;
    languages.split(" | ").find_map(|each| each.strip_prefix(runtime.label())?.strip_prefix(": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::runtimes::NAMES;

    #[test]
    fn each_part_of_the_table_begins_with_a_language() {
        for (_, languages) in TABLE {
            for part in languages.split(" | ") {
                let key = part.split(": ").next().unwrap();
                assert!(
                    NAMES.iter().any(|(_, runtime)| runtime.label() == key) || ["Go", "Rust"].contains(&key),
                    "{part}"
                );
                assert_eq!(part, part.trim());
            }
        }
    }

    #[test]
    fn a_function_is_of_the_language_of_the_caller() {
        assert!(functions(Runtime::Awk, b"date").unwrap().starts_with("strftime"));
        assert!(functions(Runtime::Lua, b"date").unwrap().starts_with("os.date"));
        assert_eq!(functions(Runtime::Native, b"date"), None);
        assert_eq!(functions(Runtime::Awk, b"mkdir"), None);
    }
}
