// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Snapshots of masks and the grids that tiles are made of, against the block mask and the interpreter.
#include <QTest>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "tests/ui/models/mask_lab/mask_making.h"
#include "ui/models/mask_lab/mask_grid.h"

using namespace vitrine;
using namespace vitrine::ui;

namespace {

BlockCounts sumOf(const BlockGrid& grid) {
    BlockCounts sum{};
    for (const BlockCounts& cell : grid.cells) {
        for (std::size_t kind = 0; kind < sum.size(); ++kind) {
            sum[kind] += cell[kind];
        }
    }
    return sum;
}

/// `cells` cells over `blocks` blocks, as even as they can be.
std::vector<std::int64_t> evenEdges(std::int64_t blocks, std::int64_t cells) {
    std::vector<std::int64_t> edges;
    for (std::int64_t i = 0; i <= cells; ++i) {
        edges.push_back(i * blocks / cells);
    }
    return edges;
}

MaskMapPtr millionDocuments() {
    std::vector<std::int64_t> lengths;
    std::int64_t left = 1 << 20;
    for (std::int64_t length = 3000; left > 0; length = length * 7 % 60013 + 500) {
        lengths.push_back(std::min(length, left));
        left -= lengths.back();
    }
    return test::map(test::program("def causal(b, h, q, k):\n    return q >= k\n"
                                   "def document(b, h, q, k):\n    return doc_id[q] == doc_id[k]\n"
                                   "both = and_masks(causal, document)\n",
                                   "both", {{"doc_id", test::integers(test::documents(lengths))}}),
                     1 << 20, 1 << 20);
}

} // namespace

class MaskMapTest final : public QObject {
    Q_OBJECT

private slots:
    void theMockupsNumbers() {
        const MaskMapPtr map = test::slidingDocument();
        QCOMPARE(map->full, 954);
        QCOMPARE(map->partial, 325);
        QCOMPARE(map->empty, 15105);
        QCOMPARE(map->mostInColumn, 17);
        QCOMPARE(std::lround(map->blockSparsity() * 10000), 9219L);
        QCOMPARE(std::lround(map->fullShare() * 10000), 7459L);
        base::ThreadPool pool(1);
        QCOMPARE(std::lround(maskDensity(*map, pool) * 10000), 677L);
        QCOMPARE(map->strips.size(), std::size_t{1});
        QCOMPARE(map->strips[0].name, QStringLiteral("doc_id"));
        QCOMPARE(map->strips[0].runs.size(), test::kLengths.size());
        QCOMPARE(map->strips[0].runs[4].begin, 8250);
        QCOMPARE(map->strips[0].runs[4].end, 8660);
        QCOMPARE(map->strips[0].runs[4].value, 4);
        const BlockFill fill = blockFill(*map, 64, 64);
        QCOMPARE(fill.allowed, 4196);
        QCOMPARE(fill.elements, 16384);
    }

    void partsAreNamedByTheirSource() {
        const auto namesOf = [](const MaskMap& map) {
            QStringList names;
            for (const MaskOperand& part : map.parts) {
                names << part.name;
            }
            return names.join(QLatin1Char(','));
        };
        QCOMPARE(namesOf(*test::slidingDocument()), QStringLiteral("causal,near,document"));
        QVERIFY(!test::slidingDocument()->alternatives);
        const auto alternatives =
            test::map(test::program("def prefix_mask(b, h, q_idx, kv_idx):\n    return kv_idx < 7\n"
                                    "def causal_mask(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n",
                                    "or_masks(prefix_mask, causal_mask)"),
                      64, 64, 16);
        QCOMPARE(namesOf(*alternatives), QStringLiteral("prefix,causal"));
        QVERIFY(alternatives->alternatives);
        const auto factory = test::map(test::program("def window(size):\n"
                                                     "    def mask_mod(b, h, q_idx, kv_idx):\n"
                                                     "        return (q_idx - kv_idx).abs() <= size\n"
                                                     "    return mask_mod\n",
                                                     "window(3)"),
                                       64, 64, 16);
        QCOMPARE(namesOf(*factory), QStringLiteral("window"));
        const auto operands = test::map(test::program("def near(a, b):\n    return (a - b).abs() <= 2\n"
                                                      "def mask(b, h, q_idx, kv_idx):\n"
                                                      "    rows = near(q_idx // 8, kv_idx // 8)\n"
                                                      "    columns = near(q_idx % 8, kv_idx % 8)\n"
                                                      "    return rows & columns\n",
                                                      "mask"),
                                        64, 64, 16);
        QCOMPARE(namesOf(*operands), QStringLiteral("rows,columns"));
    }

    void cellsSumToTheBlockMask_data() {
        QTest::addColumn<int>("cells");
        for (const int cells : {1, 2, 7, 100, 128}) {
            QTest::addRow("%d", cells) << cells;
        }
    }
    void cellsSumToTheBlockMask() {
        QFETCH(int, cells);
        const MaskMapPtr map = test::slidingDocument();
        const auto edges = evenEdges(128, cells);
        const BlockGrid grid = countBlocks(*map, nullptr, edges, edges);
        QCOMPARE(grid.cells.size(), static_cast<std::size_t>(cells) * static_cast<std::size_t>(cells));
        const BlockCounts sum = sumOf(grid);
        QCOMPARE(sum[mask_kind::kFull], 954);
        QCOMPARE(sum[mask_kind::kPartial], 325);
        QCOMPARE(sum[mask_kind::kEmpty], 15105);
        // Every cell against its blocks, one by one.
        for (std::size_t y = 0; y < grid.rows; ++y) {
            for (std::size_t x = 0; x < grid.columns; ++x) {
                BlockCounts wanted{};
                for (std::int64_t row = edges[y]; row < edges[y + 1]; ++row) {
                    for (std::int64_t column = edges[x]; column < edges[x + 1]; ++column) {
                        ++wanted[blockKind(*map, row, column)];
                    }
                }
                QCOMPARE(grid.at(x, y), wanted);
            }
        }
    }

    void differenceCountsWhatIsComputed() {
        const MaskMapPtr a = test::slidingDocument();
        const MaskMapPtr b = test::causal(16384, 16384);
        QVERIFY(comparable(*a, *b));
        const auto edges = evenEdges(128, 50);
        const BlockGrid grid = countBlocks(*a, b.get(), edges, edges);
        BlockCounts wanted{};
        for (std::int64_t row = 0; row < 128; ++row) {
            for (std::int64_t column = 0; column < 128; ++column) {
                const bool inA = blockKind(*a, row, column) != mask_kind::kEmpty;
                const bool inB = blockKind(*b, row, column) != mask_kind::kEmpty;
                ++wanted[inA && inB ? mask_kind::kBoth
                         : inA      ? mask_kind::kOnlyA
                         : inB      ? mask_kind::kOnlyB
                                    : mask_kind::kNeither];
            }
        }
        QCOMPARE(sumOf(grid), wanted);
        QCOMPARE(countAll(*a, *b, {}), wanted);
        QCOMPARE(wanted[mask_kind::kOnlyB], 8256 - 1279);
        QVERIFY(!comparable(*a, *test::causal(16384, 16384, 64)));
        QVERIFY(!comparable(*a, *test::causal(16384, 16000)));
    }

    void aMillionTokensAreCountedByRuns() {
        const MaskMapPtr map = millionDocuments();
        const auto edges = evenEdges(8192, 300);
        const BlockCounts sum = sumOf(countBlocks(*map, nullptr, edges, edges));
        QCOMPARE(sum[mask_kind::kFull], map->blocks->full);
        QCOMPARE(sum[mask_kind::kPartial], map->blocks->partial);
        QCOMPARE(sum[mask_kind::kEmpty], map->blocks->empty);
        const std::int64_t blocks =
            std::accumulate(map->columnFull.begin(), map->columnFull.end(), std::int64_t{0}) +
            std::accumulate(map->columnPartial.begin(), map->columnPartial.end(), std::int64_t{0});
        QCOMPARE(blocks, map->blocks->full + map->blocks->partial);
    }

    void elementsAreTheInterpreters() {
        const MaskMapPtr map = test::slidingDocument();
        const ElementGrid grid = elementGrid(*map, 8240, 100, 8000, 400);
        kernels::Interpreter<float> interpreter(map->mask->program, map->mask->binding);
        const auto documents = test::documents(test::kLengths);
        for (int row = 0; row < grid.rows; ++row) {
            for (int column = 0; column < grid.columns; ++column) {
                const std::int64_t q = 8240 + row;
                const std::int64_t k = 8000 + column;
                interpreter.run({0, 0, q}, k, 1, nullptr);
                const std::size_t index = grid.index(column, row);
                QCOMPARE(grid.allowed[index] != 0, interpreter.booleans()[0] != 0);
                const int wanted = q < k           ? 0
                                   : q - k >= 2048 ? 1
                                   : documents[static_cast<std::size_t>(q)] != documents[static_cast<std::size_t>(k)]
                                       ? 2
                                       : kNoPart;
                QCOMPARE(int(grid.part[index]), wanted);
            }
        }
    }

    void edgeBlocksHaveTheirRealSize() {
        const MaskMapPtr map = test::causal(300, 200);
        QCOMPARE(map->shape().queryBlocks(), 3);
        QCOMPARE(map->shape().keyBlocks(), 2);
        QCOMPARE(blockFill(*map, 2, 1).elements, std::int64_t{44} * 72);
        QCOMPARE(blockFill(*map, 2, 1).allowed, std::int64_t{44} * 72);
        QCOMPARE(blockKind(*map, 2, 1), mask_kind::kFull);
        QCOMPARE(blockFill(*map, 0, 1).allowed, 0);
        QCOMPARE(map->full + map->partial + map->empty, 6);
    }

    void oneElementNothingAndEverything() {
        const MaskMapPtr one = test::causal(1, 1);
        QCOMPARE(one->full, 1);
        QCOMPARE(int(elementGrid(*one, 0, 1, 0, 1).allowed[0]), 1);
        const MaskMapPtr nothing = test::map(
            test::program("def nothing(b, h, q_idx, kv_idx):\n    return q_idx < 0\n", "nothing"), 1000, 1000);
        QCOMPARE(nothing->full + nothing->partial, 0);
        QCOMPARE(nothing->mostInColumn, 0);
        const MaskMapPtr everything = test::map(nullptr, 1000, 500);
        QCOMPARE(everything->full, 32);
        QVERIFY(everything->strips.empty() && everything->parts.empty());
    }

    void headsAnswerForThemselves() {
        const MaskMapPtr map = test::map(
            test::program("def by_head(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < 128 * (h + 1)\n", "by_head"),
            1024, 1024, 128, 4);
        QVERIFY(map->usesHead);
        QCOMPARE(map->heads.size(), std::size_t{4});
        QVERIFY(map->heads[0].empty > map->heads[3].empty);
        const MaskMapPtr last = maskMapAt(*map, 0, 3);
        QCOMPARE(last->empty, map->heads[3].empty);
        QCOMPARE(last->blocks.get(), map->blocks.get());
        QVERIFY_EXCEPTION_THROWN(maskMapAt(*map, 0, 4), base::BadInput);
        QCOMPARE(test::causal(64, 64, 16)->heads.size(), std::size_t{1});
    }

    void scoresFollowThePositions() {
        MaskScores scores;
        scores.program = test::program("def alibi(score, b, h, q_idx, kv_idx):\n"
                                       "    return score + 0.5 * (kv_idx - q_idx)\n",
                                       "alibi", {}, true);
        const MaskMapPtr map = maskMapWithScores(*test::causal(1000, 1000), scores);
        const std::vector<std::int64_t> queries{0, 10, 11, 999};
        const std::vector<std::int64_t> keys{0, 1, 2, 9, 10, 500};
        const ScoreGrid grid = scoreGrid(*map, queries, keys);
        for (std::size_t y = 0; y < queries.size(); ++y) {
            for (std::size_t x = 0; x < keys.size(); ++x) {
                const float value = grid.values[y * keys.size() + x];
                if (keys[x] > queries[y]) {
                    QVERIFY(std::isinf(value));
                } else {
                    QCOMPARE(value, 0.5F * static_cast<float>(keys[x] - queries[y]));
                }
            }
        }
        QCOMPARE(map->scoreHigh, 0.0);
        QVERIFY(map->scoreLow <= -450);
    }

    void scoresComeFromTensors() {
        const std::vector<float> q{1, 0, 0, 1, 2, 2};
        const std::vector<float> k{3, 4, 5, 6, 7, 8};
        MaskScores scores;
        scores.base = MaskScores::Base::Product;
        scores.scale = 0.5;
        // The map only reads.
        scores.q = {const_cast<float*>(q.data()), kernels::DType::F32, kernels::Shape{1, 1, 3, 2}, 0};
        scores.k = {const_cast<float*>(k.data()), kernels::DType::F32, kernels::Shape{1, 1, 3, 2}, 0};
        const MaskMapPtr map = maskMapWithScores(*test::map(nullptr, 3, 3, 16), scores);
        const std::vector<std::int64_t> all{0, 1, 2};
        const ScoreGrid grid = scoreGrid(*map, all, all);
        const std::vector<float> wanted{1.5F, 2.5F, 3.5F, 2, 3, 4, 7, 11, 15};
        QCOMPARE(grid.values, wanted);
        QCOMPARE(map->scoreLow, 1.5);
        QCOMPARE(map->scoreHigh, 15.0);
        scores.k.shape = kernels::Shape{1, 1, 2, 3};
        QVERIFY_EXCEPTION_THROWN(maskMapWithScores(*map, scores), base::BadInput);
    }

    void badRequestsSayWhatIsWrong() {
        QVERIFY_EXCEPTION_THROWN(test::map(nullptr, 0, 10), base::BadInput);
        MaskScores scores;
        scores.program = test::program(test::kCausal, "causal");
        QVERIFY_EXCEPTION_THROWN(maskMapWithScores(*test::causal(8, 8), scores), base::BadInput);
    }

    void workStops() {
        base::StopSource stop;
        stop.request_stop();
        const MaskMapPtr map = test::causal(1000, 1000);
        const auto edges = evenEdges(8, 2);
        QVERIFY_EXCEPTION_THROWN(countBlocks(*map, nullptr, edges, edges, stop.get_token()), base::Cancelled);
        QVERIFY_EXCEPTION_THROWN(elementGrid(*map, 0, 10, 0, 10, stop.get_token()), base::Cancelled);
    }
};

QTEST_GUILESS_MAIN(MaskMapTest)
#include "mask_map_test.moc"
