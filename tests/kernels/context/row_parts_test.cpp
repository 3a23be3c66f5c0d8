// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/row_parts.h"

#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "kernels/context/context.h"
#include "kernels/context/context_options.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::kernels {
namespace {

using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Which parts ran, and how much virtual time passed where a part takes a microsecond for each of its rows.
struct Visited {
    Parts parts;
    base::TimeNs time = 0;
};

Visited visited(const ContextOptions& options, std::int64_t rows, std::int64_t part) {
    Context context(options);
    Visited out;
    const base::TimeNs begin = context.clock().now();
    forRowParts(context, rows, part, [&](std::int64_t from, std::int64_t to) {
        out.parts.emplace_back(from, to);
        if (context.can().virtualTime) {
            context.passTime(static_cast<double>(to - from) * 1e-6);
        }
    });
    out.time = context.clock().now() - begin;
    return out;
}

TEST(RowParts, AllPartsRunInTheirOrder) {
    const ContextOptions cpu;
    EXPECT_EQ(visited(cpu, 10, 4).parts, (Parts{{0, 4}, {4, 8}, {8, 10}}));
    EXPECT_EQ(visited(cpu, 10, 0).parts, (Parts{{0, 10}})) << "0: all rows at once";
    EXPECT_EQ(visited(cpu, 0, 4).parts, (Parts{}));
}

TEST(RowParts, OnMetaTheTimeOfPartsThatAreJumpedOverPasses) {
    ContextOptions meta;
    meta.backend = Backend::Meta;
    meta.traits = loadDeviceProfile("t4");
    for (const std::int64_t rows : {1, 4, 7, 12, 13, 16, 40, 1001}) {
        const Visited out = visited(meta, rows, 4);
        EXPECT_EQ(out.time, rows * 1000) << rows;
        EXPECT_LE(out.parts.size(), 4U) << rows;
        EXPECT_EQ(out.parts.back().second, rows) << "the last part may be smaller, so it runs";
    }
}

TEST(RowParts, OnMetaAllPartsRunWhereTheyAreRecorded) {
    RecordingSink sink;
    ContextOptions meta;
    meta.backend = Backend::Meta;
    meta.traits = loadDeviceProfile("t4");
    meta.sink = &sink;
    meta.profile = ProfileLevel::Full;
    EXPECT_EQ(visited(meta, 40, 4).parts.size(), 10U);
}

} // namespace
} // namespace vitrine::kernels
