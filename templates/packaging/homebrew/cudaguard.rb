# brew install --formula ./cudaguard.rb
class Cudaguard < Formula
  desc "Guard for CUDA builds"
  homepage "https://github.com/cudaguard/cudaguard"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux

  on_intel do
    url "@DOWNLOAD@/cudaguard-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256_X86_64@"
  end
  on_arm do
    url "@DOWNLOAD@/cudaguard-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256_AARCH64@"
  end

  def install
    prefix.install Dir["*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/cargo-cudaguard --version")
  end
end
