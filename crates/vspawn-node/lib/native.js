'use strict';
// Loads the Rust side, which scripts/node-package.sh builds for each architecture.

const file = `../native/${process.platform}-${process.arch}.node`;
try {
  module.exports = require(file);
} catch (error) {
  error.message = `vspawn needs Linux with glibc 2.31, on x64 or arm64: ${error.message}`;
  throw error;
}
