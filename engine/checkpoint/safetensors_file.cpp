// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstring>
#include <fmt/format.h>
#include <unordered_map>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/read_file.h"
#include "engine/checkpoint/safetensors_header.h"

namespace vitrine::engine {
namespace {

class OpenSafetensorsFile final : public SafetensorsFile {
public:
    explicit OpenSafetensorsFile(const std::string& path) : file_(path) { readHeader(); }

    const std::string& path() const override { return file_.path(); }
    const std::string& identity() const override { return file_.identity(); }
    double cachedShare() const override { return file_.cachedShare(); }
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override {
        checkRange(entry, offset, bytes);
        return file_.readDirect(entry.offset + offset, buffer, bytes, kDirectAlignment);
    }
    const std::vector<TensorEntry>& tensors() const override { return header_.tensors; }
    const std::map<std::string, std::string>& metadata() const override { return header_.metadata; }

    const TensorEntry* find(std::string_view name) const override {
        const auto found = byName_.find(name);
        return found == byName_.end() ? nullptr : &header_.tensors[found->second];
    }

    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override {
        checkRange(entry, offset, bytes);
        file_.read(entry.offset + offset, out, bytes);
    }

private:
    void checkRange(const TensorEntry& entry, std::uint64_t offset, std::uint64_t bytes) const {
        if (offset > entry.bytes || bytes > entry.bytes - offset) {
            throw base::Internal(fmt::format("{}: {}: reading {} bytes at {} of {}", file_.path(),
                                             quotedText(entry.name), bytes, offset, entry.bytes));
        }
    }

    void readHeader() {
        const std::string& path = file_.path();
        const std::uint64_t fileBytes = file_.bytes();
        if (fileBytes < 8) {
            throw base::BadInput(fmt::format("{}: size: {} bytes; a safetensors file has at least 8", path, fileBytes));
        }
        unsigned char prefix[8];
        file_.read(0, prefix, sizeof prefix);
        if (std::memcmp(prefix, "GGUF", 4) == 0) {
            throw base::Unsupported(
                path + ": format: this is a GGUF file with the name of a safetensors file; give it by itself");
        }
        if (std::memcmp(prefix, "version ", sizeof prefix) == 0) {
            throw base::BadInput(path +
                                 ": format: a Git LFS pointer stands here instead of the file; run git lfs pull");
        }
        std::uint64_t length = 0;
        for (int i = 7; i >= 0; --i) {
            length = length << 8 | prefix[i];
        }
        if (length > kMaxSafetensorsHeader || length > fileBytes - 8) {
            throw base::BadInput(
                fmt::format("{}: header length: {} bytes, but the file has {} and a header at most {}; "
                            "this is no safetensors file or an incomplete one",
                            path, length, fileBytes, kMaxSafetensorsHeader));
        }
        std::string text(static_cast<std::size_t>(length), '\0');
        file_.read(8, text.data(), length);
        header_ = parseSafetensorsHeader(text, fileBytes, path);
        byName_.reserve(header_.tensors.size());
        for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
            byName_.emplace(header_.tensors[i].name, i);
        }
    }

    ReadFile file_;
    SafetensorsHeader header_;
    std::unordered_map<std::string_view, std::size_t> byName_; // views into header_
};

} // namespace

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    return std::make_shared<const OpenSafetensorsFile>(path);
}

} // namespace vitrine::engine
