// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/cubin_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/strict_json.h"
#include "base/user_folder.h"

namespace vitrine::kernels {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kMagic = "VTCUBIN1";
constexpr std::size_t kDigest = 64;
constexpr std::string_view kSuffix = ".cubin";
constexpr std::uint64_t kMaxCubin = std::uint64_t{256} << 20;

/// magic, checksum of the rest, length of the resources as 8 hexadecimal digits, resources as JSON, image.
std::string packed(const CompiledKernel& kernel) {
    json resources = json::array();
    for (const KernelResources& item : kernel.resources) {
        resources.push_back({{"entry", item.entry},
                             {"registers", item.registers},
                             {"spill_bytes", item.spillBytes},
                             {"static_shared", item.staticShared}});
    }
    const std::string head = json{
        {"label", kernel.label},
        {"seconds", kernel.seconds},
        {"warnings", kernel.warnings},
        {"facts", resources}}.dump(-1, ' ', false, json::error_handler_t::replace);
    std::string rest = fmt::format("{:08x}", head.size()) + head;
    rest.append(reinterpret_cast<const char*>(kernel.image.data()), kernel.image.size());
    return std::string(kMagic) + base::sha256Hex(rest) + rest;
}

/// Nothing when the text is not what packed() makes.
std::optional<CompiledKernel> unpacked(std::string_view text) {
    if (!text.starts_with(kMagic) || text.size() < kMagic.size() + kDigest + 8) {
        return std::nullopt;
    }
    const std::string_view digest = text.substr(kMagic.size(), kDigest);
    const std::string_view rest = text.substr(kMagic.size() + kDigest);
    if (base::sha256Hex(rest) != digest) {
        return std::nullopt;
    }
    const std::size_t headSize = std::strtoul(std::string(rest.substr(0, 8)).c_str(), nullptr, 16);
    if (headSize > rest.size() - 8) {
        return std::nullopt;
    }
    CompiledKernel kernel;
    try {
        const json head = base::parseStrictJson(rest.substr(8, headSize), "cubin");
        kernel.label = head.at("label").get<std::string>();
        kernel.seconds = head.at("seconds").get<double>();
        kernel.warnings = head.at("warnings").get<std::vector<std::string>>();
        for (const json& item : head.at("facts")) {
            KernelResources resources;
            resources.entry = item.at("entry").get<std::string>();
            resources.registers = item.at("registers").get<int>();
            resources.spillBytes = item.at("spill_bytes").get<int>();
            resources.staticShared = item.at("static_shared").get<std::int64_t>();
            kernel.resources.push_back(std::move(resources));
        }
    } catch (const std::exception&) {
        return std::nullopt;
    }
    const std::string_view image = rest.substr(8 + headSize);
    kernel.image.assign(image.begin(), image.end());
    for (KernelResources& resources : kernel.resources) {
        resources.cubinBytes = static_cast<std::int64_t>(image.size());
    }
    return kernel;
}

std::optional<CompiledKernel> readFile(const fs::path& path) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    if (error || size > kMaxCubin) {
        return std::nullopt;
    }
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return unpacked(text);
}

/// Files of the cache, most recently used first.
std::vector<fs::directory_entry> cacheFiles(const std::string& folder) {
    std::vector<std::pair<fs::file_time_type, fs::directory_entry>> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code gone;
        if (entry->path().extension() == kSuffix) {
            const fs::file_time_type time = entry->last_write_time(gone);
            if (!gone) {
                found.emplace_back(time, *entry);
            }
        }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<fs::directory_entry> files;
    files.reserve(found.size());
    for (auto& [time, entry] : found) {
        files.push_back(std::move(entry));
    }
    return files;
}

} // namespace

std::string CubinCache::userFolder() {
    const std::string folder = base::userCacheFolder();
    return folder.empty() ? folder : folder + "/cubins";
}

CubinCache::CubinCache(std::string folder, std::uint64_t limit)
    : folder_(folder.empty() ? userFolder() : std::move(folder)), limit_(limit) {}

std::string CubinCache::pathOf(std::string_view key) const {
    return (fs::path(folder_) / (std::string(key) + std::string(kSuffix))).string();
}

std::optional<CompiledKernel> CubinCache::load(std::string_view key) const {
    if (folder_.empty()) {
        return std::nullopt;
    }
    std::error_code error;
    const fs::path path = pathOf(key);
    if (!fs::exists(path, error)) {
        return std::nullopt;
    }
    std::optional<CompiledKernel> kernel = readFile(path);
    if (!kernel) {
        base::logWarning(fmt::format("{}: is damaged; the kernel is compiled anew", path.string()));
        return std::nullopt;
    }
    // The time of last use, for eviction.
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return kernel;
}

void CubinCache::store(std::string_view key, const CompiledKernel& kernel) {
    if (folder_.empty()) {
        return;
    }
    static std::atomic<unsigned> stored{0};
    std::error_code error;
    fs::create_directories(folder_, error);
    const fs::path path = pathOf(key);
    const fs::path draft = fmt::format("{}.{}-{}.part", path.string(), ::getpid(), stored++);
    {
        std::ofstream out(draft, std::ios::binary);
        const std::string text = packed(kernel);
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        if (!out.flush()) {
            base::logDebug(fmt::format("{}: cannot be written; kernels are compiled in every run", folder_));
            out.close();
            fs::remove(draft, error);
            return;
        }
    }
    // The last rename wins. Both processes wrote the same contents.
    fs::rename(draft, path, error);
    if (error) {
        fs::remove(draft, error);
    }
    evict();
}

CubinCache::CompileLock::CompileLock(const std::string& path) : path_(path) {
    file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    while (file_ >= 0 && ::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
}

CubinCache::CompileLock::~CompileLock() {
    if (file_ >= 0) {
        // A waiting process holds this file open and gets the lock. A later one makes a new file and finds the cubin.
        ::unlink(path_.c_str());
        ::close(file_);
    }
}

std::unique_ptr<CubinCache::CompileLock> CubinCache::lock(std::string_view key) const {
    if (folder_.empty()) {
        return nullptr;
    }
    std::error_code error;
    fs::create_directories(folder_, error);
    return std::make_unique<CompileLock>((fs::path(folder_) / (std::string(key) + ".lock")).string());
}

void CubinCache::evict() {
    std::uint64_t total = 0;
    for (const fs::directory_entry& entry : cacheFiles(folder_)) {
        std::error_code error;
        const std::uintmax_t size = entry.file_size(error);
        total += error ? 0 : size;
        if (total > limit_) {
            fs::remove(entry.path(), error);
        }
    }
}

std::vector<CubinCache::File> CubinCache::list() const {
    std::vector<File> files;
    for (const fs::directory_entry& entry : cacheFiles(folder_)) {
        std::error_code error;
        const std::optional<CompiledKernel> kernel = readFile(entry.path());
        files.push_back(
            {entry.path().stem().string(), kernel ? kernel->label : "", entry.file_size(error), kernel.has_value()});
    }
    return files;
}

int CubinCache::clear() {
    int removed = 0;
    for (const fs::directory_entry& entry : cacheFiles(folder_)) {
        std::error_code error;
        removed += fs::remove(entry.path(), error) ? 1 : 0;
    }
    return removed;
}

} // namespace vitrine::kernels
