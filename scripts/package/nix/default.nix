# SPDX-License-Identifier: GPL-2.0
#
# rhist for NixOS, whose kernels have no hist triggers of their own. Untried there. "make dist" makes the tarball; then, in
# configuration.nix:
#
#   boot.extraModulePackages = [
#     (config.boot.kernelPackages.callPackage ./default.nix { source = ./rhist-0.9.0.tar.xz; })
#   ];
#   boot.kernelModules = [ "rhist" ];
{
  lib,
  stdenv,
  kernel,
  rustc,
  rustPlatform,
  rust-bindgen-unwrapped,
  pahole,
  bpftools,
  python3,
  zstd,
  source,
}:

stdenv.mkDerivation {
  pname = "rhist";
  version = "0.9.0-${kernel.version}";
  src = source;

  nativeBuildInputs = kernel.moduleBuildDependencies ++ [
    rustc
    rust-bindgen-unwrapped
    pahole
    bpftools
    python3
    zstd
  ];
  hardeningDisable = [ "all" ];

  # The compiler looks for the source of its core library in its own folder, which has none here.
  RUST_LIB_SRC = "${rustPlatform.rustLibSrc}";

  postPatch = "patchShebangs scripts";
  makeFlags = kernel.commonMakeFlags ++ [
    "KDIR=${kernel.dev}/lib/modules/${kernel.modDirVersion}/build"
    "RHIST_BTF=${kernel.dev}/vmlinux"
    "RHIST_MODULES=${kernel}/lib/modules/${kernel.modDirVersion}"
    "RUST_LIB_SRC=${rustPlatform.rustLibSrc}"
  ];

  installPhase = ''
    runHook preInstall
    install -D -m 644 build/kdir/rhist.ko $out/lib/modules/${kernel.modDirVersion}/extra/rhist.ko
    runHook postInstall
  '';

  meta = {
    description = "Histograms of trace events and user events for stock kernels";
    license = lib.licenses.gpl2Only;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
