// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/units.h"

#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"

namespace vitrine::base {
namespace {

TEST(Units, ParsesWhatPeopleWrite) {
    EXPECT_EQ(parseBytes("80GiB", "f"), std::uint64_t{80} << 30);
    EXPECT_EQ(parseBytes("16 GB", "f"), 16000000000U);
    EXPECT_EQ(parseBytes("512M", "f"), std::uint64_t{512} << 20);
    EXPECT_EQ(parseBytes("1073741824", "f"), 1073741824U);
    EXPECT_EQ(parseBytes("0", "f"), 0U);
    EXPECT_EQ(parseBytes(" 1 kib ", "f"), 1024U);
    EXPECT_EQ(parseBytes("1kB", "f"), 1000U);
    EXPECT_EQ(parseBytes("17B", "f"), 17U);
    EXPECT_EQ(parseBytes("1.5GiB", "f"), std::uint64_t{3} << 29);
    EXPECT_EQ(parseBytes("0.000001TB", "f"), 1000000U);
    EXPECT_EQ(parseBytes("2T", "f"), std::uint64_t{2} << 40);
    EXPECT_EQ(parseBytes("9223372036854775807", "f"), 9223372036854775807U);
}

TEST(Units, RefusesWhatIsNoSize) {
    for (const char* text : {"", " ", "GiB", "-1", "+1", "1.5", "1.", ".5GiB", "12 XB", "1e9", "0x10", "1GiBB", "1 0",
                             "9223372036854775808", "8388608TiB", "99999999999999999999", "1.0000001GiB", "nan",
                             "1.9999999999999999999999G"}) {
        try {
            parseBytes(text, "--vram-budget");
            ADD_FAILURE() << '"' << text << "\" was accepted";
        } catch (const BadInput& error) {
            EXPECT_EQ(error.message().rfind("--vram-budget: ", 0), 0U) << error.message();
        }
    }
}

TEST(Units, FormatsBytes) {
    EXPECT_EQ(formatBytes(0), "0 B");
    EXPECT_EQ(formatBytes(17), "17 B");
    EXPECT_EQ(formatBytes(1023), "1023 B");
    EXPECT_EQ(formatBytes(1024), "1.0 KiB");
    EXPECT_EQ(formatBytes(421888), "412.0 KiB");
    EXPECT_EQ(formatBytes((1 << 20) - 1), "1.0 MiB");
    EXPECT_EQ(formatBytes(95525274), "91.1 MiB");
    EXPECT_EQ(formatBytes(std::uint64_t{640} << 20), "640 MiB");
    EXPECT_EQ(formatBytes((std::uint64_t{100} << 20) - 1), "100 MiB");
    EXPECT_EQ(formatBytes((std::uint64_t{1} << 30) - 1), "1.00 GiB");
    EXPECT_EQ(formatBytes(13776108584), "12.83 GiB");
    EXPECT_EQ(formatBytes(std::uint64_t{3} << 39), "1.50 TiB");
    EXPECT_EQ(formatBytes(std::numeric_limits<std::uint64_t>::max()), "16777216.00 TiB");
}

TEST(Units, FormatsGroups) {
    EXPECT_EQ(formatGrouped(39535509504), "39,535,509,504");
    EXPECT_EQ(formatGrouped(0), "0");
    EXPECT_EQ(formatGrouped(999), "999");
    EXPECT_EQ(formatGrouped(-1000), "-1,000");
    EXPECT_EQ(formatGrouped(-999), "-999");
    EXPECT_EQ(formatGrouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Units, FormatsRates) {
    EXPECT_EQ(formatBytesPerSecond(37.0e9), "37.0 GB/s");
    EXPECT_EQ(formatBytesPerSecond(0), "0.0 B/s");
    EXPECT_EQ(formatBytesPerSecond(999.96e6), "1.0 GB/s");
    EXPECT_EQ(formatBytesPerSecond(4.8e12), "4.8 TB/s");
    EXPECT_EQ(formatBytesPerSecond(std::numeric_limits<double>::infinity()), "n/a");
    EXPECT_EQ(formatBytesPerSecond(std::numeric_limits<double>::quiet_NaN()), "n/a");
}

TEST(Units, FormatsDurations) {
    EXPECT_EQ(formatDuration(0), "0 ns");
    EXPECT_EQ(formatDuration(17), "17 ns");
    EXPECT_EQ(formatDuration(1700), "1.70 µs");
    EXPECT_EQ(formatDuration(412000), "412 µs");
    EXPECT_EQ(formatDuration(41200000), "41.2 ms");
    EXPECT_EQ(formatDuration(999999), "1.00 ms");
    EXPECT_EQ(formatDuration(-1500), "-1.50 µs");
    EXPECT_EQ(formatDuration(2500000000), "2.50 s");
    EXPECT_EQ(formatDuration(std::int64_t{7200} * 1000000000), "7200 s");
}

} // namespace
} // namespace vitrine::base
