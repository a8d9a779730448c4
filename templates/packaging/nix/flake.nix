# nix run github:cudaguard/cudaguard?dir=templates/packaging/nix
{
  description = "Guard for CUDA builds";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      archives = {
        x86_64-linux = { target = "x86_64-unknown-linux-gnu"; sha256 = "@SHA256_X86_64@"; };
        aarch64-linux = { target = "aarch64-unknown-linux-gnu"; sha256 = "@SHA256_AARCH64@"; };
      };
      build = system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          archive = archives.${system};
        in
        pkgs.stdenv.mkDerivation {
          pname = "cudaguard";
          version = "@VERSION@";
          src = pkgs.fetchurl {
            url = "@DOWNLOAD@/cudaguard-@VERSION@-${archive.target}.tar.gz";
            inherit (archive) sha256;
          };
          nativeBuildInputs = [ pkgs.autoPatchelfHook ];
          buildInputs = [ pkgs.stdenv.cc.cc.lib ];
          installPhase = ''
            mkdir -p $out
            cp -r bin share $out/
          '';
          meta.mainProgram = "cargo-cudaguard";
        };
    in
    {
      packages = builtins.mapAttrs (system: _: { default = build system; }) archives;
    };
}
