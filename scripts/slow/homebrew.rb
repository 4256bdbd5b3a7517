# Installs the archive of a formula as Homebrew does, with a stand-in for its class Formula: ruby homebrew.rb FORMULA UNPACKED PREFIX
require "fileutils"
require "pathname"

class Formula
  FACTS = {}
  class << self
    %i[desc homepage version license url sha256 depends_on].each { |name| define_method(name) { |value| FACTS[name] = value } }
    def on_intel = yield
    def on_arm = nil
    def test = nil
  end

  def prefix = Prefix.new(ARGV[2])
end

class Prefix < Pathname
  def install(files) = FileUtils.cp_r(files, mkpath_and_self, preserve: true)

  def mkpath_and_self
    mkpath
    self
  end
end

load ARGV[0]
%i[desc homepage version license url sha256 depends_on].each { |name| Formula::FACTS.fetch(name) }
Dir.chdir(ARGV[1]) { Spawnscope.new.install }
