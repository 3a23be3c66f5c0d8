// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/output_check.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

/// The regular files in a folder, not in its folders.
std::vector<fs::path> filesIn(const std::string& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::error_code none;
        if (it->is_regular_file(none)) {
            files.push_back(it->path());
        }
    }
    return files;
}

[[noreturn]] void failSame(const NamedFile& output, const NamedFile& other) {
    throw base::BadInput(fmt::format("{}: {} is the {} of {} too; name another", output.option, output.path,
                                     fs::is_directory(output.path) ? "folder" : "file", other.option));
}

} // namespace

constinit const base::OutputKind kLogitsOutput{"a file of logits", "vitrine logits"};
constinit const base::OutputKind kAttentionOutput{"a file of attention results", "vitrine attention"};
constinit const base::OutputKind kMaskArraysOutput{"a file of mask arrays", "vitrine mask"};
constinit const base::OutputKind kGradientsOutput{"a file of gradients", "vitrine finetune"};
constinit const base::OutputKind kScoresOutput{"a file of scores", "vitrine score"};
constinit const base::OutputKind kRolloutsOutput{"a file of rollouts", "vitrine session export"};

std::map<std::string, std::string> madeBy(const base::OutputKind& kind) {
    return {{std::string(base::kMadeByKey), std::string(kind.maker)}};
}

void checkOutputFile(const NamedFile& output, const base::OutputKind& kind, std::span<const NamedFile> others) {
    if (output.path.empty()) {
        return;
    }
    for (const NamedFile& other : others) {
        if (isSameFile(output.path, other.path)) {
            failSame(output, other);
        }
    }
    base::requireReplaceable(output.path, kind);
    checkWritable(output.path);
}

void checkOutputFolder(const NamedFile& output, std::span<const NamedFile> others) {
    if (output.path.empty()) {
        return;
    }
    std::error_code none;
    if (fs::exists(output.path, none) && !fs::is_directory(output.path, none)) {
        throw base::BadInput(fmt::format("{}: {} is a file; name a folder", output.option, output.path));
    }
    for (const NamedFile& other : others) {
        if (other.path.empty()) {
            continue;
        }
        const bool folder = fs::is_directory(other.path, none);
        if (folder && fs::equivalent(output.path, other.path, none)) {
            failSame(output, other);
        }
        for (const fs::path& theirs : folder ? filesIn(other.path) : std::vector<fs::path>{other.path}) {
            for (const fs::path& there : filesIn(output.path)) {
                if (fs::equivalent(there, theirs, none)) {
                    throw base::BadInput(fmt::format("{}: {} is a file of {} too; name another folder", output.option,
                                                     there.string(), other.option));
                }
            }
        }
    }
}

bool goesOnIn(const std::string& resume, const std::string& folder) {
    const fs::path from = resume;
    std::error_code none;
    return !resume.empty() && (fs::equivalent(from, folder, none) ||
                               fs::equivalent((from / "").parent_path().parent_path(), folder, none));
}

void requireNoTraining(const NamedFile& folder, std::span<const std::string> leftOvers) {
    std::error_code error;
    for (fs::directory_iterator it(folder.path, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (std::ranges::any_of(leftOvers, [&](const fs::path& left) { return left.filename() == name; })) {
            continue;
        }
        if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") || name == "config.json" ||
            name == "adapter_config.json" || name == "metrics.csv" || name == "merged" ||
            name.starts_with("checkpoint-")) {
            throw base::BadInput(fmt::format("{}: {} holds {} already; name another folder, resume from it, or give "
                                             "--overwrite",
                                             folder.option, folder.path, name));
        }
    }
}

} // namespace vitrine::engine
