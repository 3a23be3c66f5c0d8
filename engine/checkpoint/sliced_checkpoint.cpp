// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/sliced_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/quoted_text.h"
#include "engine/checkpoint/tensor_table.h"

namespace vitrine::engine {

namespace {

/// Runs that are shorter than this are read together with what lies between them.
constexpr std::uint64_t kShortRun = 4096;
constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;

/// The file of a base whose tensors are parts.
class SlicedFile final : public SafetensorsFile {
public:
    SlicedFile(const SafetensorsFile& base, const std::string& what)
        : base_(base), identity_(fmt::format("{} {}", base.identity(), what)) {}

    void add(const TensorEntry& whole, const TensorPart& wanted) {
        std::int64_t elements = 1;
        for (const std::int64_t dim : wanted.shape) {
            elements *= dim;
        }
        if (elements == 0 || whole.bytes % static_cast<std::uint64_t>(elements) != 0) {
            throw base::Internal(fmt::format("{}: {}: no part of it can be read", path(), whole.name));
        }
        const SliceRuns runs(wanted.shape, wanted.slice, whole.bytes / static_cast<std::uint64_t>(elements));
        TensorEntry part = whole;
        part.bytes = runs.bytes();
        part.shape.clear();
        for (const DimSlice& dim : wanted.slice) {
            part.shape.push_back(dim.size());
        }
        entries_.push_back(std::move(part));
        parts_.push_back({&whole, runs});
    }
    /// All parts are added.
    void close() {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            byName_.emplace(entries_[i].name, i);
        }
    }

    const std::string& path() const override { return base_.path(); }
    const std::vector<TensorEntry>& tensors() const override { return entries_; }
    const TensorEntry* find(std::string_view name) const override {
        const auto found = byName_.find(name);
        return found == byName_.end() ? nullptr : &entries_[found->second];
    }
    const std::map<std::string, std::string>& metadata() const override { return base_.metadata(); }
    const std::string& identity() const override { return identity_; }
    double cachedShare() const override { return base_.cachedShare(); }

    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override {
        requireInside(entry, offset, bytes);
        const Part& part = partOf(entry);
        auto* to = static_cast<std::byte*>(out);
        while (bytes > 0) {
            const std::uint64_t run = offset / part.runs.runBytes(), skipped = offset % part.runs.runBytes();
            const std::uint64_t here = std::min(bytes, part.runs.runBytes() - skipped);
            if (here < kShortRun && here < bytes) {
                const std::uint64_t done = readTogether(part, offset, to, bytes);
                to += done;
                offset += done;
                bytes -= done;
                continue;
            }
            base_.read(*part.whole, part.runs.begin(run) + skipped, to, here);
            to += here;
            offset += here;
            bytes -= here;
        }
    }

    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override {
        requireInside(entry, offset, bytes);
        const Part& part = partOf(entry);
        const std::uint64_t skipped = offset % part.runs.runBytes();
        if (skipped + bytes <= part.runs.runBytes()) {
            const std::uint64_t run = offset / part.runs.runBytes();
            return base_.readDirect(*part.whole, part.runs.begin(run) + skipped, buffer, bytes);
        }
        read(entry, offset, buffer, bytes);
        return buffer;
    }

private:
    struct Part {
        const TensorEntry* whole = nullptr;
        SliceRuns runs;
    };

    const Part& partOf(const TensorEntry& entry) const { return parts_[byName_.at(entry.name)]; }

    void requireInside(const TensorEntry& entry, std::uint64_t offset, std::uint64_t bytes) const {
        if (offset > entry.bytes || bytes > entry.bytes - offset) {
            throw base::Internal(fmt::format("{}: {}: reading {} bytes at {} of {}", path(),
                                             base::quotedText(entry.name), bytes, offset, entry.bytes));
        }
    }

    /// As many short runs as lie within a piece of the whole, which is read at once. Returns the bytes of the part.
    std::uint64_t readTogether(const Part& part, std::uint64_t offset, std::byte* out, std::uint64_t bytes) const {
        const std::uint64_t length = part.runs.runBytes();
        const std::uint64_t first = part.runs.begin(offset / length) + offset % length;
        std::uint64_t end = first, done = 0;
        struct Piece {
            std::uint64_t from = 0, bytes = 0;
        };
        std::vector<Piece> pieces;
        while (done < bytes) {
            const std::uint64_t at = offset + done;
            const std::uint64_t from = part.runs.begin(at / length) + at % length;
            const std::uint64_t size = std::min(bytes - done, length - at % length);
            if (from < first || from + size - first > kReadAtOnce) {
                break;
            }
            pieces.push_back({from - first, size});
            end = from + size;
            done += size;
        }
        std::vector<std::byte> whole(end - first);
        base_.read(*part.whole, first, whole.data(), whole.size());
        for (const Piece& piece : pieces) {
            std::memcpy(out, whole.data() + piece.from, piece.bytes);
            out += piece.bytes;
        }
        return done;
    }

    const SafetensorsFile& base_;
    std::string identity_;
    std::vector<TensorEntry> entries_;
    std::vector<Part> parts_;
    std::unordered_map<std::string_view, std::size_t> byName_; ///< views into entries_
};

class SlicedCheckpoint final : public TensorTable {
public:
    SlicedCheckpoint(std::shared_ptr<const Checkpoint> base, const PartOf& partOf, const std::string& what)
        : TensorTable(base->folder()), base_(std::move(base)) {
        for (const auto& [name, location] : base_->tensors()) {
            const std::optional<TensorPart> part = partOf(*location.entry);
            if (!part) {
                continue;
            }
            if (part->whole()) {
                add(*location.file, *location.entry);
                continue;
            }
            std::unique_ptr<SlicedFile>& file = files_[location.file];
            if (file == nullptr) {
                file = std::make_unique<SlicedFile>(*location.file, what);
            }
            file->add(*location.entry, *part);
        }
        for (const auto& [whole, file] : files_) {
            file->close();
            for (const TensorEntry& entry : file->tensors()) {
                add(*file, entry);
            }
        }
    }

private:
    std::shared_ptr<const Checkpoint> base_;
    std::map<const SafetensorsFile*, std::unique_ptr<SlicedFile>> files_;
};

} // namespace

TensorSlice wholeSlice(const std::vector<std::int64_t>& shape) {
    TensorSlice slice;
    for (const std::int64_t dim : shape) {
        slice.push_back({0, dim, 1});
    }
    return slice;
}

SliceRuns::SliceRuns(const std::vector<std::int64_t>& shape, const TensorSlice& slice, std::uint64_t elementBytes) {
    std::uint64_t step = elementBytes;
    bool inRun = true; // dimensions after the last one that is not whole
    for (std::size_t at = shape.size(); at-- > 0;) {
        const DimSlice& dim = slice[at];
        const auto extent = static_cast<std::uint64_t>(shape[at]);
        if (!inRun || dim.size() != shape[at]) {
            const std::uint64_t block = extent / static_cast<std::uint64_t>(dim.blocks) * step;
            dims_.insert(dims_.begin(), {static_cast<std::uint64_t>(dim.count), static_cast<std::uint64_t>(dim.blocks),
                                         static_cast<std::uint64_t>(dim.begin) * step, step, block});
            inRun = false;
        }
        step *= extent;
    }
    if (dims_.empty()) {
        runBytes_ = step;
        return;
    }
    // The elements of a block of the last divided dimension lie together.
    Dim& last = dims_.back();
    runBytes_ = last.count * last.step;
    last.count = 1;
    for (const Dim& dim : dims_) {
        runs_ *= dim.count * dim.blocks;
    }
}

std::uint64_t SliceRuns::begin(std::uint64_t number) const {
    std::uint64_t at = 0;
    for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim) {
        const std::uint64_t index = number % (dim->count * dim->blocks);
        number /= dim->count * dim->blocks;
        at += dim->begin + index / dim->count * dim->blockStep + index % dim->count * dim->step;
    }
    return at;
}

std::shared_ptr<const Checkpoint> sliceCheckpoint(std::shared_ptr<const Checkpoint> base, const PartOf& partOf,
                                                  const std::string& what) {
    return std::make_shared<const SlicedCheckpoint>(std::move(base), partOf, what);
}

} // namespace vitrine::engine
