// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Kernel packs as they are read: manifest and files (docs/kernel-packs.md). Reading a pack runs none of its code.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/jit/expression.h"

namespace vitrine::kernels {

enum class KernelFileKind : std::uint8_t { Cuda, Ptx, Cubin };

struct KernelFile {
    std::string path; ///< relative to the pack, also the name in #include
    KernelFileKind kind = KernelFileKind::Cuda;
};

struct KernelLaunchRule {
    std::string entry;
    std::array<Expression, 3> grid, block, cluster;
    Expression shared;
    bool dependent = true;
};

struct KernelVariant {
    std::string name, family;
    int abi = 1;
    std::vector<std::string> archs;
    Expression when;
    int priority = 0;
    std::vector<std::string> specialize;
    std::vector<KernelFile> files;
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<KernelLaunchRule> launches;
    std::vector<std::map<std::string, std::int64_t>> examples;
    std::string place; ///< "PACK/manifest.json: variants[3]", for messages
};

/// Whether a device of `arch` may run what a manifest lists as `listed`: the same name, or an earlier one of the same
/// major version. Names that end in a letter (sm_90a) run on exactly that device.
bool archRuns(std::string_view listed, std::string_view arch);

/// "sm_90a" is 90. Throws BadInput for what is no arch.
int archNumber(std::string_view arch);

class KernelPack {
public:
    /// Reads DIR/manifest.json and DIR/manifest/*.json, and every file named there. Throws BadInput
    /// "DIR/manifest.json: FIELD: what, and what to do": unknown keys, missing files, checksums that differ.
    static KernelPack load(const std::string& folder);
    /// The pack that is part of the program.
    static const KernelPack& builtin();
    /// For tests: a pack from texts; `files` are manifests and sources by path.
    static KernelPack fromFiles(const std::string& place, std::map<std::string, std::string> files, bool checksums);

    const std::string& name() const { return name_; }
    const std::string& description() const { return description_; }
    const std::string& place() const { return place_; } ///< the folder, or "builtin"
    bool isBuiltin() const { return builtin_; }
    const std::vector<KernelVariant>& variants() const { return variants_; }
    /// Files by path; for the built-in pack every device header.
    const std::map<std::string, std::string, std::less<>>& files() const { return files_; }

private:
    std::string name_, description_, place_;
    bool builtin_ = false;
    std::vector<KernelVariant> variants_;
    std::map<std::string, std::string, std::less<>> files_;
};

/// Path and text of every file of kernels/device, made at build time.
std::vector<std::pair<std::string_view, std::string_view>> builtinDeviceFiles();

} // namespace vitrine::kernels
