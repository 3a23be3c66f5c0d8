// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The pipeline of reads and copies over a device that is host memory and copies as late as it may.

#include "engine/model/weight_mover.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <unistd.h>

#include "base/error.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnit = SafetensorsFile::kDirectAlignment;
constexpr std::uint64_t kPiece = 8 * kUnit;

/// Copies are done when their buffer is needed again, or when somebody waits: as late as a device could.
class LatePort final : public UploadPort {
public:
    explicit LatePort(int workers) : slots_(static_cast<std::size_t>(workers)) {
        for (Slot& slot : slots_) {
            slot.memory.resize(kPiece + 3 * kUnit);
        }
    }
    int workers() const override { return static_cast<int>(slots_.size()); }
    std::uint64_t bufferBytes() const override { return kPiece + 2 * kUnit; }
    void* buffer(int worker) override {
        const std::lock_guard lock(mutex_);
        Slot& slot = slots_[static_cast<std::size_t>(worker)];
        copy(slot);
        void* begin = slot.memory.data();
        std::size_t room = slot.memory.size();
        return std::align(kUnit, kPiece + 2 * kUnit, begin, room);
    }
    void send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag) override {
        const std::lock_guard lock(mutex_);
        Slot& slot = slots_[static_cast<std::size_t>(worker)];
        slot.from = from;
        slot.to = device;
        slot.bytes = bytes;
        slot.tag = tag;
    }
    void beforeCompute() override { finish(); }
    void afterCompute() override { ++reuses; }
    std::vector<Copied> takeCopied() override {
        const std::lock_guard lock(mutex_);
        return std::exchange(copied_, {});
    }
    void finish() override {
        const std::lock_guard lock(mutex_);
        for (Slot& slot : slots_) {
            copy(slot);
        }
    }

    int reuses = 0;

private:
    struct Slot {
        std::vector<std::byte> memory;
        const void* from = nullptr;
        void* to = nullptr;
        std::uint64_t bytes = 0, tag = 0;
    };
    void copy(Slot& slot) {
        if (slot.to != nullptr) {
            std::memcpy(slot.to, slot.from, slot.bytes);
            slot.to = nullptr;
            copied_.push_back({slot.tag, 0, 0});
        }
    }
    std::mutex mutex_;
    std::vector<Slot> slots_;
    std::vector<Copied> copied_;
};

class WeightMoverTest : public ::testing::Test {
protected:
    void SetUp() override {
        path_ = (fs::temp_directory_path() / fmt::format("vitrine-mover-{}.safetensors", ::getpid())).string();
        entries_ = {{"a", kernels::DType::U8, {3}},
                    {"b", kernels::DType::U8, {static_cast<std::int64_t>(5 * kPiece + 77)}},
                    {"c_scales", kernels::DType::U8, {1000}}};
        entries_[2].packing = stackPacking();
        entries_[2].stored.field = kernels::WeightField::Scales;
        for (const TensorSpec& entry : entries_) {
            std::vector<std::uint8_t>& values = values_.emplace_back(static_cast<std::size_t>(entry.shape[0]));
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<std::uint8_t>(i * 31 % 251 + values_.size());
            }
        }
    }
    void TearDown() override { fs::remove(path_); }

    void write() {
        const auto writer = SafetensorsWriter::create(path_, entries_);
        for (const auto& values : values_) {
            writer->write(values.data(), values.size());
        }
        writer->finish();
        file_ = SafetensorsFile::open(path_);
        for (const TensorSpec& entry : entries_) {
            locations_.push_back({file_.get(), file_->find(entry.name)});
        }
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            sources_.push_back({static_cast<std::uint32_t>(i), entries_[i], &locations_[i], 0, values_[i].size()});
            places_.emplace_back(values_[i].size());
        }
    }
    WeightMove moveOf(std::size_t i) { return {&sources_[i], 0, values_[i].size(), places_[i].data()}; }
    bool arrived(std::size_t i) const {
        return std::memcmp(places_[i].data(), values_[i].data(), values_[i].size()) == 0;
    }

    std::string path_;
    std::vector<TensorSpec> entries_;
    std::vector<std::vector<std::uint8_t>> values_;
    std::shared_ptr<const SafetensorsFile> file_;
    std::vector<Checkpoint::Location> locations_;
    std::vector<WeightSource> sources_;
    std::vector<std::vector<std::byte>> places_;
};

TEST_F(WeightMoverTest, BringsEveryByteAndReportsEachPieceOnce) {
    write();
    test::RecordingSink sink;
    const auto context = test::makeContext(kernels::Backend::Cpu, &sink);
    std::uint64_t reported = 0;
    const auto mover = makePipelineMover(*context, std::make_unique<LatePort>(4),
                                         [&](const WeightSource&, std::uint64_t bytes) { reported += bytes; });
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        mover->move(moveOf(i));
    }
    mover->finish();
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        EXPECT_TRUE(arrived(i)) << entries_[i].name;
        total += values_[i].size();
    }
    EXPECT_EQ(reported, total);
    const auto& lanes = sink.lanes();
    EXPECT_EQ(std::count(lanes.begin(), lanes.end(), "Read"), 8) << "six pieces of b and one of each other";
    EXPECT_EQ(std::count(lanes.begin(), lanes.end(), "Copy"), 8);
}

TEST_F(WeightMoverTest, WaitIsForTheFirstMoves) {
    write();
    const auto context = test::makeContext(kernels::Backend::Cpu);
    auto port = std::make_unique<LatePort>(2);
    const LatePort& seen = *port;
    const auto mover = makePipelineMover(*context, std::move(port), [](const WeightSource&, std::uint64_t) {});
    mover->move(moveOf(1));
    mover->wait(1);
    EXPECT_TRUE(arrived(1));
    mover->reuse();
    EXPECT_EQ(seen.reuses, 1);
    mover->move(moveOf(2));
    mover->wait(2);
    EXPECT_TRUE(arrived(2));
}

TEST_F(WeightMoverTest, AFileThatShrinksAndAScaleThatIsNoNumberAreBadInput) {
    values_[2][999] = 255;
    write();
    const auto context = test::makeContext(kernels::Backend::Cpu);
    const auto messageOf = [&](std::size_t i) {
        const auto mover =
            makePipelineMover(*context, std::make_unique<LatePort>(3), [](const WeightSource&, std::uint64_t) {});
        try {
            mover->move(moveOf(i));
            mover->finish();
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_NE(messageOf(2).find(path_ + ": c_scales: "), std::string::npos);
    fs::resize_file(path_, fs::file_size(path_) / 2);
    EXPECT_NE(messageOf(1).find(path_ + ": reading: "), std::string::npos);
}

TEST_F(WeightMoverTest, StopsBetweenPieces) {
    write();
    base::StopSource stop;
    kernels::ContextOptions options;
    options.stop = stop.get_token();
    kernels::Context context(options);
    const auto mover = makePipelineMover(context, std::make_unique<LatePort>(2),
                                         [&](const WeightSource&, std::uint64_t) { stop.request_stop(); });
    EXPECT_THROW(
        {
            mover->move(moveOf(1));
            mover->finish();
        },
        base::Cancelled);
}

TEST_F(WeightMoverTest, ReadsPastTheCacheAreThoseThroughIt) {
    write();
    const double share = file_->cachedShare();
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
    std::vector<std::byte> memory(kPiece + 3 * kUnit);
    void* begin = memory.data();
    std::size_t room = memory.size();
    auto* buffer = static_cast<std::byte*>(std::align(kUnit, kPiece + 2 * kUnit, begin, room));
    const TensorEntry& entry = *locations_[1].entry;
    for (const auto& [offset, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0, 1}, {0, kPiece}, {4095, 2}, {4096, 4096}, {entry.bytes - 5, 5}, {entry.bytes - kPiece, kPiece}}) {
        const std::byte* found = file_->readDirect(entry, offset, buffer, bytes);
        EXPECT_EQ(std::memcmp(found, values_[1].data() + offset, bytes), 0) << offset << " " << bytes;
    }
    EXPECT_THROW(file_->readDirect(entry, entry.bytes, buffer, 1), base::Internal);
}

TEST(PipelineShapeTest, GrowsWithTheModel) {
    EXPECT_EQ(pipelineShape(1).workers, 1);
    EXPECT_EQ(pipelineShape(1).pieceBytes, kUnit);
    const PipelineShape large = pipelineShape(std::uint64_t{13} << 30);
    EXPECT_GE(large.workers, 1);
    EXPECT_LE(large.workers, 16);
    EXPECT_EQ(large.bufferBytes, large.pieceBytes + 2 * kUnit);
    EXPECT_EQ(large.bufferBytes % kUnit, 0U);
}

} // namespace
} // namespace vitrine::engine
