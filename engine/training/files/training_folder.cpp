// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/training_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/shards.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kFolderPrefix = "checkpoint-";
constexpr std::string_view kPartialEnd = ".partial"; ///< of a checkpoint that is not complete
constexpr std::string_view kPartMark = ".part-";
constexpr std::uintmax_t kLongestList = 1 << 20; ///< bytes
constexpr const char* kListKey = "files";

/// What trainings write first or last under names that are always the same.
constexpr std::array<const char*, 8> kResultNames = {
    "adapter_config.json", "adapter_model.safetensors", "config.json", "model.safetensors", "metrics.csv", "merged",
    "tensorboard",         kTrainingFilesName};
constexpr const char* kTableName = "metrics.csv";
constexpr std::size_t kTensorHead = 4096; ///< bytes of a safetensors file that are looked at
constexpr std::string_view kTableHead = "step,loss,learning_rate,grad_norm,tokens_per_second\n";

fs::file_type linkTypeOf(const fs::path& path) {
    std::error_code none;
    return fs::symlink_status(path, none).type();
}

bool isFile(const fs::path& path) {
    return linkTypeOf(path) == fs::file_type::regular;
}

/// Without separators at its end, which would follow a link.
fs::path withoutEnd(const std::string& folder) {
    const fs::path path = fs::path(folder).lexically_normal();
    return path.has_filename() ? path : path.parent_path();
}

std::optional<std::int64_t> numberAfter(std::string_view name, std::string_view prefix) {
    std::int64_t number = 0;
    if (!name.starts_with(prefix)) {
        return std::nullopt;
    }
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end && number >= 0 ? std::optional(number) : std::nullopt;
}

/// A file of a checkpoint, or what a killed process left of it.
bool isCheckpointFile(const std::string& name) {
    return std::ranges::any_of(std::array{kTrainerProgressName, kTrainerTensorsName}, [&](const std::string& own) {
        return name == own || (name.starts_with(own) && numberAfter(name, own + std::string(kPartMark)));
    });
}

/// Whether the folder, which is no link, has files of a checkpoint alone.
bool hasCheckpointFilesAlone(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (!isFile(it->path()) || !isCheckpointFile(it->path().filename().string())) {
            return false;
        }
    }
    return !error;
}

/// A name that stays below the folder: "metrics.csv", "merged/config.json".
bool staysBelow(const std::string& name) {
    const fs::path path = name;
    return !name.empty() && path.is_relative() && path.has_filename() && path.lexically_normal() == path &&
           *path.begin() != ".." && *path.begin() != ".";
}

bool isOwnCheckpoint(const fs::path& folder) {
    return linkTypeOf(folder) == fs::file_type::directory && isFile(folder / kTrainerProgressName) &&
           isFile(folder / kTrainerTensorsName) && hasCheckpointFilesAlone(folder);
}

/// The first bytes of a file; none of a link.
std::string headOf(const fs::path& path, std::size_t count) {
    std::string head(isFile(path) ? count : 0, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return head;
}

/// The object of a file that is laid out as ours are: two spaces and an end of the last line. PEFT writes no such end.
Json ownObject(const fs::path& path) {
    const std::string text = headOf(path, kLongestList);
    const Json object = Json::parse(text, nullptr, false);
    const bool own = object.is_object() && text == object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return own ? object : Json::object();
}

/// Files that a training of a version without a list surely wrote, by their names and by what is in them.
std::set<std::string> unlistedFiles(const fs::path& output) {
    std::set<std::string> out;
    if (headOf(output / kTableName, kTableHead.size()) == kTableHead) {
        out.insert(kTableName);
    }
    const auto checkpoints = namedCheckpoints(output.string());
    if (out.empty() && std::ranges::none_of(checkpoints, [](const auto& one) { return isOwnCheckpoint(one.second); })) {
        return out; // nothing tells that there was a training
    }
    const Json adapter = ownObject(output / "adapter_config.json");
    const std::string tensors = headOf(output / "adapter_model.safetensors", kTensorHead);
    if (adapter.value("peft_type", Json()) != "LORA" || adapter.value("task_type", Json()) != "CAUSAL_LM" ||
        tensors.find("\"base_model.model.") == std::string::npos) {
        return out;
    }
    out.insert({"adapter_config.json", "adapter_model.safetensors"});
    if (ownObject(output / "merged" / "config.json").contains("model_type") &&
        headOf(output / "merged" / "model.safetensors", kTensorHead).find("\"dtype\"") != std::string::npos) {
        out.insert({"merged/config.json", "merged/model.safetensors"});
    }
    return out;
}

/// What is still in the folder and in its merged/, as one text; empty where nothing is.
std::string leftIn(const fs::path& output) {
    std::set<std::string> names;
    for (const char* below : {"", "merged"}) {
        std::error_code error;
        for (fs::directory_iterator it(output / below, error), end; !error && it != end; it.increment(error)) {
            const std::string name = it->path().filename().string();
            if (!name.starts_with('.') && (*below != '\0' || name != "merged")) {
                names.insert((fs::path(below) / name).string());
            }
        }
    }
    constexpr std::size_t kMostNamed = 8;
    const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
    const std::vector<std::string> first(names.begin(),
                                         std::next(names.begin(), static_cast<std::ptrdiff_t>(names.size() - more)));
    return fmt::format("{}{}", fmt::join(first, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

std::set<std::string> listedFiles(const fs::path& output) {
    std::set<std::string> out;
    const fs::path path = output / kTrainingFilesName;
    std::error_code error;
    if (isFile(path) && fs::file_size(path, error) <= kLongestList && !error) {
        std::ifstream file(path, std::ios::binary);
        const Json list = Json::parse(file, nullptr, false);
        if (list.is_object() && list.contains(kListKey) && list[kListKey].is_array()) {
            for (const Json& name : list[kListKey]) {
                if (name.is_string() && staysBelow(name.get<std::string>())) {
                    out.insert(name.get<std::string>());
                }
            }
        }
        out.insert(kTrainingFilesName);
        return out;
    }
    return unlistedFiles(output);
}

[[noreturn]] void failLink(const fs::path& path) {
    throw base::BadInput(fmt::format("output: {} is a link, and --overwrite follows none; remove the link, or name "
                                     "another folder",
                                     path.string()));
}

[[noreturn]] void failRemoving(const fs::path& path, const std::error_code& error) {
    throw base::BadInput(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
}

void removeFile(const fs::path& path) {
    std::error_code error;
    if (isFile(path) && !fs::remove(path, error) && error) {
        failRemoving(path, error);
    }
}

} // namespace

CheckpointKind checkpointKind(const std::string& folder) {
    const fs::path path = withoutEnd(folder);
    std::error_code none;
    if (!fs::is_regular_file(path / kTrainerProgressName, none) ||
        !fs::is_regular_file(path / kTrainerTensorsName, none)) {
        return CheckpointKind::Foreign;
    }
    if (linkTypeOf(path) == fs::file_type::symlink) {
        return CheckpointKind::Link;
    }
    return hasCheckpointFilesAlone(path) ? CheckpointKind::Own : CheckpointKind::Mixed;
}

bool isNamedCheckpoint(const std::string& folder) {
    std::error_code none;
    return checkpointKind(folder) != CheckpointKind::Foreign ||
           (fs::is_regular_file(fs::path(folder) / kTrainerProgressName, none) && hasCheckpointFilesAlone(folder));
}

std::vector<std::string> partialCheckpoints(const std::string& output) {
    std::vector<std::string> out;
    std::error_code error;
    for (fs::directory_iterator it(output, error), end; !error && it != end; it.increment(error)) {
        const fs::path& path = it->path();
        if (path.extension() == kPartialEnd && numberAfter(path.stem().string(), kFolderPrefix) &&
            linkTypeOf(path) == fs::file_type::directory && hasCheckpointFilesAlone(path)) {
            out.push_back(path.string());
        }
    }
    return out;
}

std::string checkpointName(std::int64_t step) {
    return fmt::format("{}{}", kFolderPrefix, step);
}

std::map<std::int64_t, std::string> namedCheckpoints(const std::string& output) {
    std::map<std::int64_t, std::string> out;
    std::error_code error;
    for (fs::directory_iterator it(output, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        const std::optional<std::int64_t> step = numberAfter(name, kFolderPrefix);
        if (step && name == checkpointName(*step)) {
            out[*step] = it->path().string();
        }
    }
    return out;
}

void removeCheckpoint(const std::string& folder) {
    if (linkTypeOf(withoutEnd(folder)) != fs::file_type::directory || !hasCheckpointFilesAlone(folder)) {
        throw base::BadInput(
            fmt::format("{}: holds files that no training wrote, and would be replaced by a checkpoint; "
                        "move it, or name another output folder",
                        folder));
    }
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        files.push_back(it->path());
    }
    std::ranges::for_each(files, removeFile);
    if (!fs::remove(folder, error) && error) {
        failRemoving(folder, error);
    }
}

void noteTrainingFiles(const std::string& output, const std::vector<std::string>& names) {
    std::set<std::string> all;
    if (isFile(fs::path(output) / kTrainingFilesName)) {
        all = listedFiles(output);
    }
    all.insert(names.begin(), names.end());
    const Json list = {{"made_by", "vitrine finetune"}, {kListKey, all}};
    writeTextFile((fs::path(output) / kTrainingFilesName).string(),
                  list.dump(1, ' ', false, Json::error_handler_t::replace));
}

std::vector<std::string> earlierTraining(const std::string& output) {
    const fs::path folder = withoutEnd(output);
    std::vector<std::string> out;
    for (const char* name : kResultNames) {
        if (linkTypeOf(folder / name) == fs::file_type::symlink) {
            failLink(folder / name);
        }
    }
    for (const std::string& name : listedFiles(folder)) {
        if (linkTypeOf(folder / name) == fs::file_type::symlink) {
            failLink(folder / name);
        }
        if (isFile(folder / name) && linkTypeOf((folder / name).parent_path()) != fs::file_type::symlink) {
            out.push_back((folder / name).string());
        }
    }
    for (const auto& [step, path] : namedCheckpoints(output)) {
        const CheckpointKind kind = checkpointKind(path);
        if (kind == CheckpointKind::Link) {
            failLink(path);
        }
        if (kind == CheckpointKind::Mixed) {
            throw base::BadInput(
                fmt::format("output: {} is a checkpoint with other files in it, which --overwrite does "
                            "not delete; move it, or name another folder",
                            path));
        }
        if (kind == CheckpointKind::Own) {
            out.push_back(path);
        }
    }
    std::ranges::copy(partialCheckpoints(output), std::back_inserter(out));
    if (!out.empty() && linkTypeOf(folder) == fs::file_type::symlink) {
        failLink(folder);
    }
    return out;
}

std::vector<std::string> abandonedTraining(const std::string& output) {
    const fs::path folder = withoutEnd(output);
    if (!isFile(folder / kTrainingFilesName) || !namedCheckpoints(output).empty()) {
        return {};
    }
    std::vector<std::string> out = partialCheckpoints(output);
    for (const std::string& name : listedFiles(folder)) {
        const bool isMetrics = name == kTableName || name == kTrainingFilesName || name.starts_with("tensorboard/");
        if (!isMetrics && linkTypeOf(folder / name) != fs::file_type::not_found) {
            return {};
        }
        if (isFile(folder / name)) {
            out.push_back((folder / name).string());
        }
    }
    return out;
}

std::uint64_t earlierTrainingBytes(const std::string& output) {
    std::uint64_t bytes = 0;
    const auto add = [&](const fs::path& file) {
        std::error_code error;
        const std::uintmax_t size = fs::file_size(file, error);
        bytes += error ? 0 : size;
    };
    for (const std::string& one : earlierTraining(output)) {
        std::error_code error;
        if (isFile(one)) {
            add(one);
            continue;
        }
        for (fs::directory_iterator it(one, error), end; !error && it != end; it.increment(error)) {
            add(it->path());
        }
    }
    return bytes;
}

void removeEarlierTraining(const std::string& output) {
    const std::vector<std::string> earlier = earlierTraining(output);
    const bool listed = isFile(withoutEnd(output) / kTrainingFilesName);
    std::set<fs::path> emptied;
    for (const std::string& one : earlier) {
        const fs::path path = one;
        if (linkTypeOf(path) == fs::file_type::directory) {
            removeCheckpoint(path.string());
            continue;
        }
        removeFile(path);
        emptied.insert(path.parent_path());
    }
    emptied.erase(withoutEnd(output));
    for (const fs::path& folder : emptied) {
        std::error_code stays; // it has files of somebody else
        fs::remove(folder, stays);
    }
    const std::string left = listed || earlier.empty() ? std::string() : leftIn(withoutEnd(output));
    if (!left.empty()) {
        base::logWarning(fmt::format("output: {} has no {}, as a training of an older version leaves it; what it did "
                                     "not surely write stays: {}",
                                     output, kTrainingFilesName, left));
    }
}

} // namespace vitrine::engine
