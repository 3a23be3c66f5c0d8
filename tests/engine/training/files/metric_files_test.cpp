// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/metric_files.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {
namespace {

std::string bytesOfFile(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
}

std::string metricPath(const std::string& name) {
    const std::string path = testing::TempDir() + "metric_files_" + name;
    std::filesystem::remove_all(path);
    return path;
}

void writeTable(const std::string& path, std::int64_t first, std::int64_t end) {
    MetricTable table(path, {"loss", "rate"}, first);
    for (std::int64_t step = first; step < end; ++step) {
        table.write(step, std::array{static_cast<double>(step) / 2, 1e-4});
    }
}

TEST(MetricTable, HoldsOneRowForEachStep) {
    const std::string path = metricPath("rows.csv");
    writeTable(path, 0, 3);
    EXPECT_EQ(bytesOfFile(path), "step,loss,rate\n0,0,0.0001\n1,0.5,0.0001\n2,1,0.0001\n");
}

TEST(MetricTable, TheFieldOfNoNumberIsEmpty) {
    const std::string path = metricPath("empty.csv");
    const double none = std::numeric_limits<double>::quiet_NaN();
    MetricTable(path, {"loss", "reward", "eval_reward"}, 1).write(1, std::array{none, 0.5, none});
    EXPECT_EQ(bytesOfFile(path), "step,loss,reward,eval_reward\n1,,0.5,\n");
}

TEST(MetricTable, GoesOnWithoutRepeatedSteps) {
    const std::string path = metricPath("resumed.csv");
    writeTable(path, 0, 5);
    const std::string whole = bytesOfFile(path);
    writeTable(path, 3, 5);
    EXPECT_EQ(bytesOfFile(path), whole);
    std::ofstream(path, std::ios::app) << "5,0.1"; // a run that was killed while it wrote
    writeTable(path, 5, 6);
    EXPECT_EQ(bytesOfFile(path), whole + "5,2.5,0.0001\n");
    std::ofstream(path, std::ios::trunc) << "step,lo";
    writeTable(path, 3, 5);
    EXPECT_EQ(bytesOfFile(path), "step,loss,rate\n3,1.5,0.0001\n4,2,0.0001\n");
    writeTable(path, 0, 1);
    EXPECT_EQ(bytesOfFile(path), "step,loss,rate\n0,0,0.0001\n");
}

TEST(MetricTable, GoesOnWithColumnsThatItDidNotHave) {
    const std::string path = metricPath("added.csv");
    const std::vector<std::string> columns = {"loss", "a,b", "rate", "eval_reward"};
    std::ofstream(path) << "step,loss,rate\n1,0.5,0.25\n2,,0.125\n3,0.7,0.1\n4,0.1";
    MetricTable(path, columns, 3).write(3, std::array{1.0, 2.0, 3.0, 4.0});
    EXPECT_EQ(bytesOfFile(path), "step,loss,\"a,b\",rate,eval_reward\n1,0.5,,0.25,\n2,,,0.125,\n3,1,2,3,4\n");
    MetricTable(path, columns, 2).write(2, std::array{1.0, 2.0, 3.0, 4.0});
    EXPECT_EQ(bytesOfFile(path), "step,loss,\"a,b\",rate,eval_reward\n1,0.5,,0.25,\n2,1,2,3,4\n");
    for (const std::string text : {"step,rate,loss\n1,2,3\n", "loss\n1\n", "step,loss,other\n1,2,3\n"}) {
        std::ofstream(path, std::ios::trunc) << text;
        EXPECT_THROW(MetricTable(path, columns, 2), base::BadInput);
        EXPECT_EQ(bytesOfFile(path), text);
    }
}

TEST(MetricTable, ValuesKeepAllDigits) {
    const std::string path = metricPath("digits.csv");
    MetricTable table(path, {"a,b"}, 0);
    table.write(7, std::array{0.1 + 0.2});
    table.write(8, std::array{std::numeric_limits<double>::quiet_NaN()});
    table.write(9, std::array{-std::numeric_limits<double>::infinity()});
    EXPECT_EQ(bytesOfFile(path), "step,\"a,b\"\n7,0.30000000000000004\n8,\n9,-inf\n");
    EXPECT_THROW(table.write(10, {}), base::Internal);
}

TEST(MetricTable, OtherFilesAreNotTouched) {
    const std::string path = metricPath("other.csv");
    for (const std::string text : {"my notes\n", "my notes", "step,loss\n1,2\n"}) {
        std::ofstream(path, std::ios::trunc) << text;
        EXPECT_THROW(writeTable(path, 0, 1), base::BadInput);
        EXPECT_EQ(bytesOfFile(path), text);
    }
    EXPECT_THROW(writeTable("/no/such/folder/x.csv", 0, 1), base::BadInput);
    EXPECT_THROW(writeTable(testing::TempDir(), 0, 1), base::BadInput);
    EXPECT_THROW(writeTable("/dev/full", 0, 1), base::Error); // exit code 1: the input was right
}

TEST(Crc32c, EqualsPublishedValues) {
    EXPECT_EQ(crc32c(""), 0U);
    EXPECT_EQ(crc32c("123456789"), 0xE306'9283U);
    // RFC 3720, B.4
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A91'36AAU);
    EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8'AB43U);
}

/// Reads what it is given from left to right.
class ProtoReader {
public:
    explicit ProtoReader(std::string bytes) : bytes_(std::move(bytes)) {}
    bool done() const { return at_ >= bytes_.size(); }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0;; shift += 7) {
            const auto byte = static_cast<unsigned char>(bytes_.at(at_++));
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) {
                return value;
            }
        }
    }
    std::string take(std::size_t count) {
        std::string out = bytes_.substr(at_, count);
        EXPECT_EQ(out.size(), count);
        at_ += count;
        return out;
    }
    template <class T> T fixed() {
        T value{};
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

private:
    std::string bytes_;
    std::size_t at_ = 0;
};

struct ReadEvent {
    double time = 0;
    std::int64_t step = 0;
    std::string version;
    std::string session;
    std::vector<std::pair<std::string, float>> values;
};

void readSummary(ProtoReader summary, ReadEvent& event) {
    while (!summary.done()) {
        EXPECT_EQ(summary.varint(), (1U << 3) | 2U);
        ProtoReader value(summary.take(summary.varint()));
        EXPECT_EQ(value.varint(), (1U << 3) | 2U);
        const std::string tag = value.take(value.varint());
        EXPECT_EQ(value.varint(), (2U << 3) | 5U);
        event.values.emplace_back(tag, value.fixed<float>());
        EXPECT_TRUE(value.done());
    }
}

ReadEvent readEvent(ProtoReader reader) {
    ReadEvent event;
    while (!reader.done()) {
        switch (reader.varint()) {
        case (1U << 3) | 1U:
            event.time = reader.fixed<double>();
            break;
        case 2U << 3:
            event.step = static_cast<std::int64_t>(reader.varint());
            break;
        case (3U << 3) | 2U:
            event.version = reader.take(reader.varint());
            break;
        case (5U << 3) | 2U:
            readSummary(ProtoReader(reader.take(reader.varint())), event);
            break;
        case (7U << 3) | 2U:
            event.session = reader.take(reader.varint());
            break;
        default:
            ADD_FAILURE() << "an unknown field";
            return event;
        }
    }
    return event;
}

/// The records of a file; their checksums are checked with the mask taken off, as a reader does.
std::vector<ReadEvent> readEvents(const std::string& path) {
    const auto unmasked = [](std::uint32_t masked) {
        const std::uint32_t rotated = masked - 0xA282'EAD8U;
        return (rotated >> 17) | (rotated << 15);
    };
    std::vector<ReadEvent> events;
    ProtoReader file(bytesOfFile(path));
    while (!file.done()) {
        const std::string length = file.take(8);
        EXPECT_EQ(unmasked(file.fixed<std::uint32_t>()), crc32c(length));
        const std::string data = file.take(ProtoReader(length).fixed<std::uint64_t>());
        EXPECT_EQ(unmasked(file.fixed<std::uint32_t>()), crc32c(data));
        events.push_back(readEvent(ProtoReader(data)));
    }
    return events;
}

TEST(TensorBoardFile, HoldsEvents) {
    const std::string folder = metricPath("board") + "/deep";
    TensorBoardFile file(folder, 5);
    file.write(5, std::vector<NamedMetric>{{"train/loss", 2.5}, {"train/rate", 1e-4}});
    file.write(300, std::vector<NamedMetric>{{"train/loss", std::nan("")}});
    const std::vector<ReadEvent> events = readEvents(file.path());
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(events[0].version, "brain.Event:2");
    EXPECT_EQ(events[1].step, 5);
    EXPECT_EQ(events[1].session, std::string("\x08\x01"));
    EXPECT_EQ(events[2].step, 5);
    EXPECT_EQ(events[2].values,
              (std::vector<std::pair<std::string, float>>{{"train/loss", 2.5F}, {"train/rate", 1e-4F}}));
    EXPECT_GT(events[2].time, 1.6e9);
    EXPECT_EQ(events[3].step, 300);
    EXPECT_TRUE(std::isnan(events[3].values.at(0).second));
}

TEST(TensorBoardFile, NamesAreDifferent) {
    const std::string folder = metricPath("names");
    const TensorBoardFile one(folder, 0);
    const TensorBoardFile other(folder, 0);
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(one.path().rfind(folder + "/events.out.tfevents.", 0), 0U);
    EXPECT_THROW(TensorBoardFile("/dev/null/x", 0), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
