// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {
namespace {

using nlohmann::ordered_json;

/// The header's JSON, padded with spaces so that the data begin at a multiple of 8.
std::string headerText(const std::vector<TensorSpec>& entries, const std::map<std::string, std::string>& metadata,
                       std::uint64_t& dataBytes) {
    ordered_json root = ordered_json::object();
    if (!metadata.empty()) {
        root["__metadata__"] = metadata;
    }
    dataBytes = 0;
    for (const TensorSpec& entry : entries) {
        const std::uint64_t begin = dataBytes;
        dataBytes += bytesOf(entry);
        if (root.contains(entry.name)) {
            throw base::Internal("two tensors are named " + entry.name);
        }
        root[entry.name] = {{"dtype", kernels::safetensorsName(entry.dtype)},
                            {"shape", entry.shape},
                            {"data_offsets", {begin, dataBytes}}};
    }
    std::string text = root.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
}

class FileSafetensorsWriter final : public SafetensorsWriter {
public:
    FileSafetensorsWriter(const std::string& path, const std::vector<TensorSpec>& entries,
                          const std::map<std::string, std::string>& metadata)
        : file_(path) {
        const std::string header = headerText(entries, metadata, remaining_);
        unsigned char prefix[8];
        for (std::size_t i = 0; i < sizeof prefix; ++i) {
            prefix[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
        }
        file_.write(prefix, sizeof prefix);
        file_.write(header.data(), header.size());
    }

    void write(const void* data, std::uint64_t bytes) override {
        if (bytes > remaining_) {
            throw base::Internal(
                fmt::format("{}: {} bytes more than its header says", file_.path(), bytes - remaining_));
        }
        file_.write(data, bytes);
        remaining_ -= bytes;
    }

    void finish() override {
        if (remaining_ != 0) {
            throw base::Internal(fmt::format("{}: {} bytes less than its header says", file_.path(), remaining_));
        }
        file_.finish();
    }

private:
    AtomicFile file_;
    std::uint64_t remaining_ = 0;
};

} // namespace

std::unique_ptr<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                             const std::vector<TensorSpec>& entries,
                                                             const std::map<std::string, std::string>& metadata) {
    return std::make_unique<FileSafetensorsWriter>(path, entries, metadata);
}

} // namespace vitrine::engine
