// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/sliced_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "base/error.h"
#include "engine/checkpoint/tensor_table.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

/// A file of bytes in memory that counts how many are read.
class BytesFile final : public SafetensorsFile {
public:
    BytesFile(std::vector<std::int64_t> shape, std::size_t elementBytes) {
        const auto count =
            static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
        bytes.resize(count * elementBytes);
        std::mt19937 random{std::random_device{}()};
        std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random()); });
        entries_.push_back({"x", kernels::DType::U8, std::move(shape), 0, bytes.size()});
    }
    const std::string& path() const override { return text_; }
    const std::vector<TensorEntry>& tensors() const override { return entries_; }
    const TensorEntry* find(std::string_view name) const override { return name == "x" ? entries_.data() : nullptr; }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    const std::string& identity() const override { return text_; }
    double cachedShare() const override { return 0.5; }
    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t count) const override {
        ASSERT_LE(offset + count, entry.bytes);
        std::memcpy(out, bytes.data() + offset, count);
        read_ += count;
    }
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t count) const override {
        read(entry, offset, buffer, count);
        ++direct_;
        return buffer;
    }

    std::vector<std::uint8_t> bytes;
    mutable std::uint64_t read_ = 0;
    mutable int direct_ = 0;

private:
    std::string text_ = "memory";
    std::vector<TensorEntry> entries_;
    std::map<std::string, std::string> metadata_;
};

class OneFile final : public TensorTable {
public:
    explicit OneFile(const SafetensorsFile& file) : TensorTable("folder") { add(file, file.tensors().front()); }
};

/// The bytes of the part, element by element.
std::vector<std::uint8_t> expectedPart(const std::vector<std::uint8_t>& bytes, const TensorPart& part,
                                       std::size_t elementBytes) {
    std::vector<std::uint8_t> out;
    std::size_t count = 1;
    for (const DimSlice& dim : part.slice) {
        count *= static_cast<std::size_t>(dim.size());
    }
    for (std::size_t number = 0; number < count; ++number) {
        std::size_t rest = number, at = 0, step = 1;
        for (std::size_t dim = part.shape.size(); dim-- > 0;) {
            const DimSlice& slice = part.slice[dim];
            const auto index = static_cast<std::int64_t>(rest % static_cast<std::size_t>(slice.size()));
            rest /= static_cast<std::size_t>(slice.size());
            const std::int64_t block = part.shape[dim] / slice.blocks;
            const std::int64_t whole = index / slice.count * block + slice.begin + index % slice.count;
            at += static_cast<std::size_t>(whole) * step;
            step *= static_cast<std::size_t>(part.shape[dim]);
        }
        for (std::size_t byte = 0; byte < elementBytes; ++byte) {
            out.push_back(bytes[at * elementBytes + byte]);
        }
    }
    return out;
}

TensorPart randomPart(std::mt19937& random) {
    const auto below = [&](std::int64_t limit) {
        return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random);
    };
    TensorPart part;
    const std::int64_t rank = 1 + below(4);
    for (std::int64_t dim = 0; dim < rank; ++dim) {
        const std::int64_t blocks = 1 + below(2), block = 1 + below(rank == 1 ? 5000 : 40);
        part.shape.push_back(blocks * block);
        DimSlice slice{0, blocks * block, 1};
        if (below(2) == 0) {
            slice.blocks = blocks;
            slice.begin = below(block);
            slice.count = 1 + below(block - slice.begin);
        }
        part.slice.push_back(slice);
    }
    return part;
}

TEST(SlicedCheckpoint, PartsAreWhatTheirSlicesSay) {
    std::mt19937 random{std::random_device{}()};
    for (int round = 0; round < 300; ++round) {
        const TensorPart part = randomPart(random);
        const std::size_t elementBytes = round % 3 + 1;
        const BytesFile file(part.shape, elementBytes);
        const auto sliced = sliceCheckpoint(
            std::make_shared<OneFile>(file), [&](const TensorEntry&) { return std::optional(part); }, "part");
        const Checkpoint::Location* found = sliced->find("x");
        ASSERT_NE(found, nullptr);
        const std::vector<std::uint8_t> expected = expectedPart(file.bytes, part, elementBytes);
        ASSERT_EQ(found->entry->bytes, expected.size());
        std::vector<std::uint8_t> read(expected.size());
        found->file->read(*found->entry, 0, read.data(), read.size());
        ASSERT_EQ(read, expected);
        // Any stretch of it as well, past the page cache too.
        const std::size_t begin = random() % expected.size(), count = 1 + random() % (expected.size() - begin);
        std::vector<std::byte> buffer(count);
        const std::byte* direct = found->file->readDirect(*found->entry, begin, buffer.data(), count);
        ASSERT_EQ(std::memcmp(direct, expected.data() + begin, count), 0);
    }
}

TEST(SlicedCheckpoint, ReadsOnlyThePart) {
    const BytesFile file({64, 20'000}, 2);
    const auto read = [&](const TensorSlice& slice) {
        const auto sliced = sliceCheckpoint(
            std::make_shared<OneFile>(file),
            [&](const TensorEntry& entry) { return std::optional(TensorPart{entry.shape, slice}); }, "part");
        const Checkpoint::Location* found = sliced->find("x");
        std::vector<std::uint8_t> bytes(found->entry->bytes);
        file.read_ = 0;
        found->file->read(*found->entry, 0, bytes.data(), bytes.size());
        return std::pair(file.read_, found->entry->bytes);
    };
    for (const TensorSlice& slice :
         {TensorSlice{{16, 16, 1}, {0, 20'000, 1}}, TensorSlice{{0, 64, 1}, {5'000, 5'000, 1}}}) {
        const auto [bytes, part] = read(slice);
        EXPECT_EQ(bytes, part);
    }
    EXPECT_EQ(read({{0, 64, 1}, {0, 20'000, 1}}).second, file.bytes.size());
}

TEST(SlicedCheckpoint, LeavesOutWhatARankHasNotAndKeepsWholeTensorsAsTheyAre) {
    const auto base = Checkpoint::open(vitrine::test::fixture("llama"));
    const auto sliced = sliceCheckpoint(
        base,
        [](const TensorEntry& entry) -> std::optional<TensorPart> {
            if (entry.name.find("mlp") != std::string::npos) {
                return std::nullopt;
            }
            TensorPart part{entry.shape, wholeSlice(entry.shape)};
            if (entry.name == "lm_head.weight") {
                part.slice[0] = {0, entry.shape[0] / 2, 1};
            }
            return part;
        },
        "half");
    EXPECT_EQ(sliced->find("model.layers.0.mlp.up_proj.weight"), nullptr);
    EXPECT_EQ(sliced->find("model.norm.weight")->entry, base->find("model.norm.weight")->entry);
    const Checkpoint::Location *half = sliced->find("lm_head.weight"), *whole = base->find("lm_head.weight");
    EXPECT_EQ(half->entry->bytes * 2, whole->entry->bytes);
    EXPECT_NE(half->file->identity(), whole->file->identity());
    EXPECT_EQ(half->file->path(), whole->file->path());
    std::byte byte{};
    EXPECT_THROW(half->file->read(*half->entry, half->entry->bytes, &byte, 1), base::Internal);
}

} // namespace
} // namespace vitrine::engine
