// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Models over snapshots, the axis, numbers as text and questions about memory.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiler/analysis/memory_lookup.h"
#include "tests/profiler/analysis/scripted_run.h"
#include "tests/ui/models/common/fake_runs.h"
#include "tests/ui/models/common/patience.h"
#include "ui/models/common/axis_map.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/common/stack_model.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/models/memory/allocation_links.h"
#include "ui/models/memory/allocation_table.h"
#include "ui/models/memory/fit_changes.h"
#include "ui/models/memory/oom_summary.h"
#include "ui/models/session/run_summary.h"

using namespace vitrine;
using namespace vitrine::ui;
using profiler::GroupBy;
using test::seconds;

class ModelsTest final : public QObject {
    Q_OBJECT

    static FlatTreePtr tree(const QString& prefix, std::initializer_list<int> sizes) {
        auto made = std::make_shared<FlatTree>();
        made->columns = {{QStringLiteral("Name"), false}, {QStringLiteral("Size"), true}};
        quint64 key = 1;
        for (const int size : sizes) {
            FlatNode node;
            node.key = key++;
            node.cells = {FlatCell(prefix + QString::number(size)), FlatCell(QString::number(size), size)};
            made->nodes.push_back(node);
            FlatNode child = node;
            child.key = key++;
            child.parent = static_cast<std::int32_t>(made->nodes.size() - 1);
            made->nodes.push_back(child);
        }
        FlatNode total;
        total.key = 999;
        total.last = true;
        total.cells = {FlatCell(QStringLiteral("total")), FlatCell(QStringLiteral("0"), 0)};
        made->nodes.push_back(total);
        return made;
    }

    static QStringList names(const QAbstractItemModel& model) {
        QStringList out;
        for (int row = 0; row < model.rowCount(); ++row) {
            out << model.index(row, 0).data().toString();
        }
        return out;
    }

private slots:
    void flatTreeIsAModel() {
        FlatTreeModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setTree(tree(QStringLiteral("a"), {3, 10, 7}));
        model.sort(1, Qt::DescendingOrder);
        QCOMPARE(names(model), (QStringList{"a10", "a7", "a3", "total"}));
        model.sort(1, Qt::AscendingOrder);
        QCOMPARE(names(model), (QStringList{"a3", "a7", "a10", "total"})); // the total stays last
        QCOMPARE(model.rowCount(model.index(0, 0)), 1);
        QCOMPARE(model.parent(model.index(0, 0, model.index(0, 0))), model.index(0, 0));
        model.setTree(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void sameKeysKeepIndexes() {
        FlatTreeModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setTree(tree(QStringLiteral("a"), {3, 10, 7}));
        model.sort(1, Qt::DescendingOrder);
        const QPersistentModelIndex ten = model.index(0, 0);
        QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
        model.setTree(tree(QStringLiteral("b"), {30, 10, 7})); // the first node grew: another order
        QCOMPARE(resets.count(), 0);
        QCOMPARE(names(model), (QStringList{"b30", "b10", "b7", "total"}));
        QCOMPARE(ten.data().toString(), QStringLiteral("b10"));
        QCOMPARE(ten.row(), 1);
        model.setTree(tree(QStringLiteral("c"), {1}));
        QCOMPARE(resets.count(), 1);
    }

    void copyGivesRawValues() {
        FlatTreeModel model;
        auto made = std::make_shared<FlatTree>();
        made->columns = {{QStringLiteral("Name"), false}, {QStringLiteral("Size"), true}};
        FlatNode node;
        node.cells = {FlatCell(QStringLiteral("logits")),
                      FlatCell(QStringLiteral("36.82 GiB"), 1, QStringLiteral("39535509504"))};
        made->nodes.push_back(node);
        model.setTree(made);
        QCOMPARE(asTabSeparated(model, {model.index(0, 0)}), QStringLiteral("logits\t39535509504"));
    }

    void numbers() {
        QCOMPARE(bytesText(std::uint64_t(39'535'509'504)), QStringLiteral("36.82\u00A0GiB"));
        QCOMPARE(exactBytesText(39'535'509'504), QStringLiteral("39,535,509,504\u00A0B"));
        QCOMPARE(signedBytesText(-std::int64_t(test::kGiB)), QStringLiteral("\u22121.00\u00A0GiB"));
        QCOMPARE(signedBytesText(0), QStringLiteral("0"));
        QCOMPARE(signedBytesText(INT64_MIN).left(1), QStringLiteral("\u2212"));
        QCOMPARE(instantText(seconds(10.93)), QStringLiteral("10.93\u00A0s"));
        QCOMPARE(instantText(seconds(3), 1'000'000'000), QStringLiteral("3\u00A0s"));
        QCOMPARE(instantText(seconds(0.25), 10'000'000), QStringLiteral("0.25\u00A0s"));
        QCOMPARE(ratioText(1.654), QStringLiteral("1.65x"));
        QCOMPARE(ratioText(1286.2), QStringLiteral("1,286x")); // decimals would be cut in a column
        QCOMPARE(ratioText(std::nan("")), unknownText());
        QCOMPARE(shareText(0.572), QStringLiteral("57.2\u00A0%"));
        QCOMPARE(shareText(std::nan("")), unknownText());
        QCOMPARE(addressText(0x00068e000000), QStringLiteral("0x0006_8e00_0000"));
    }

    void byteGridIsRoundAndCovers_data() {
        QTest::addColumn<quint64>("top");
        for (const quint64 top : std::initializer_list<quint64>{0, 1, 7, 1000, 5ULL << 20, 14ULL << 20, 101ULL << 30,
                                                                3ULL << 40, UINT64_MAX / 4}) {
            QTest::addRow("%llu", static_cast<unsigned long long>(top)) << top;
        }
    }

    void byteGridIsRoundAndCovers() {
        QFETCH(quint64, top);
        const ByteGrid grid = byteGrid(top);
        QVERIFY(grid.step > 0);
        QVERIFY(grid.top >= top);
        const auto step = std::max<std::uint64_t>(grid.step, 1); // for readers that do not know QVERIFY
        QVERIFY(grid.top / step <= 7);
        QCOMPARE(grid.top % step, std::uint64_t(0));
    }

    void budgetOf80GiBIsAGridOf20() {
        const ByteGrid grid = byteGrid(101 * test::kGiB);
        QCOMPARE(grid.step, 20 * test::kGiB);
        QCOMPARE(QString::fromLatin1(grid.unitName), QStringLiteral("GiB"));
    }

    void axisOfTimeAndEvents() {
        const auto run = test::makeGenerateRun(100);
        const TimeRange all{0, run->end()};
        const AxisMap time = AxisMap::ofTime(all, 1000);
        QCOMPARE(time.x(0), 0.0);
        QCOMPARE(time.x(all.end), 1000.0);
        QCOMPARE(time.time(500), (all.end + 1) / 2); // rounded: end() is 1 ns after the last event
        const AxisMap events = AxisMap::ofEvents(*run, all, 1000);
        QCOMPARE(events.kind(), AxisKind::Events);
        double last = -1;
        for (int i = 0; i <= 1000; ++i) {
            const base::TimeNs at = events.time(i);
            QVERIFY(events.x(at) >= last - 1e-6); // never backwards
            last = std::max(last, events.x(at));
        }
        // The load has 25 of 425 events but half of the time: it takes less room by events.
        QVERIFY(events.x(seconds(0.4)) < time.x(seconds(0.4)) / 2);
        QCOMPARE(AxisMap::ofEvents(*run, {5, 6}, 100).kind(), AxisKind::Time); // nothing happens there
    }

    void stacksAddUp() {
        const auto run = test::makeOutOfMemoryRun();
        const AxisMap axis = AxisMap::ofTime({0, run->end()}, 400);
        const StackModelPtr categories = categoryStack(*run, axis, 400);
        for (const GroupBy by : {GroupBy::Layer, GroupBy::Op, GroupBy::Dtype}) {
            const StackModelPtr grouped = groupedStack(*run, axis, 400, by);
            QCOMPARE(grouped->columns.size(), categories->columns.size());
            for (std::size_t c = 0; c < grouped->columns.size(); ++c) {
                std::uint64_t sum = 0;
                for (std::size_t layer = 0; layer < grouped->layers.size(); ++layer) {
                    sum += grouped->value(c, layer);
                }
                QCOMPARE(sum, categories->columns[c].total);
            }
        }
        QCOMPARE(categories->largestTotal(), run->memory().peak(0, run->end() + 1).maxTotal);
    }

    void aliveTreeAddsUp_data() {
        QTest::addColumn<int>("by");
        for (int by = 0; by < 4; ++by) {
            QTest::addRow("%d", by) << by;
        }
    }

    void aliveTreeAddsUp() {
        QFETCH(int, by);
        const auto run = test::makeOutOfMemoryRun();
        const FlatTreePtr alive = aliveTree(*run, seconds(10.93), static_cast<GroupBy>(by));
        const std::uint64_t total = profiler::totalBytes(run->memory().at(seconds(10.93)));
        std::uint64_t groups = 0;
        std::map<std::int32_t, std::uint64_t> children;
        for (const FlatNode& node : alive->nodes) {
            const std::uint64_t bytes = node.cells[1].sort.toULongLong();
            if (node.parent >= 0) {
                children[node.parent] += bytes;
            } else if (!node.last) {
                groups += bytes;
            } else {
                QCOMPARE(bytes, total);
            }
        }
        QCOMPARE(groups, total);
        for (const auto& [parent, bytes] : children) {
            QCOMPARE(bytes, alive->nodes[static_cast<std::size_t>(parent)].cells[1].sort.toULongLong());
        }
        FlatTreeModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setTree(alive);
        QVERIFY(model.rowCount() > 1);
    }

    void longGroupsAreCutWithACount() {
        const auto run = test::makeOutOfMemoryRun();
        const FlatTreePtr alive = aliveTree(*run, seconds(10.93), GroupBy::Category, 5);
        const auto more = std::find_if(alive->nodes.begin(), alive->nodes.end(), [](const FlatNode& node) {
            return node.cells[0].text.endsWith(QStringLiteral("more"));
        });
        QVERIFY(more != alive->nodes.end());
        QCOMPARE(more->cells[0].text, QStringLiteral("19 more"));
    }

    void tensorNames() {
        QCOMPARE(shortTensorName("model.layers.3.mlp.experts.gate_up"), QStringLiteral("mlp.experts.gate_up, layer 3"));
    }

    void packedTensorsSayTheirFormat() {
        profiler::testing::ScriptedRun run;
        const std::string name = "model.layers.0.mlp.down_proj.weight", int4 = "INT4, groups of 128";
        run.allocate(name, base::MemoryCategory::Weights, 4096, kernels::DType::U8, int4);
        run.allocate(name + "_scale", base::MemoryCategory::Weights, 64, kernels::DType::BF16, int4);
        run.allocate(name + ".nf4", base::MemoryCategory::Weights, 64, kernels::DType::Nf4, "NF4");
        run.allocate("x", base::MemoryCategory::Activations, 64, kernels::DType::U8);
        const auto timeline = run.timeline();
        const auto text = [&](std::size_t row) { return tensorText(*timeline, timeline->memory().allocations()[row]); };
        QCOMPARE(text(0), QStringLiteral("bytes of INT4, groups of 128"));
        QCOMPARE(text(1), QStringLiteral("bfloat16 of INT4, groups of 128"));
        QCOMPARE(text(2), QStringLiteral("NF4"));
        QCOMPARE(text(3), QStringLiteral("uint8"));
    }

    void queries_data() {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<int>("least");
        QTest::addColumn<bool>("all");
        QTest::newRow("size") << QStringLiteral(">30GiB") << 1 << false;
        QTest::newRow("sizes") << QStringLiteral("1GiB..2GiB") << 2 << false;
        QTest::newRow("small") << QStringLiteral("<1MiB") << 3 << false;
        QTest::newRow("text") << QStringLiteral("LOGITS") << 5 << false;
        QTest::newRow("category") << QStringLiteral("workspace") << 2 << false;
        QTest::newRow("address") << QStringLiteral("0x0..0x10") << 1 << false;
        QTest::newRow("addresses") << QStringLiteral("0x0..") << 500 << true;
    }

    void queries() {
        QFETCH(QString, typed);
        QFETCH(int, least);
        QFETCH(bool, all);
        const auto run = test::makeOutOfMemoryRun();
        const profiler::FoundAllocations found =
            profiler::findAllocations(*run, profiler::AllocationQuery::parse(typed.toStdString()));
        QVERIFY2(found.total >= static_cast<std::size_t>(least), qPrintable(QString::number(found.total)));
        QCOMPARE(found.total == run->memory().allocations().size(), all);
        QVERIFY(std::is_sorted(found.rows.begin(), found.rows.end()));
        QVERIFY(profiler::AllocationQuery::parse("  ").empty());
    }

    void whyOutOfMemory() {
        const auto run = test::makeOutOfMemoryRun();
        const OomSummary facts = oomSummary(*run, 0);
        QCOMPARE(facts.asker, QStringLiteral("Step 3"));
        QCOMPARE(facts.tensor, QStringLiteral("grad_logits"));
        QCOMPARE(facts.free, facts.event.budget - facts.event.reserved);
        QCOMPARE(facts.missing, facts.event.reserved + facts.event.requested - facts.event.budget);
        QVERIFY(facts.before != nullptr);
        QCOMPARE(facts.before->index, 2);
        const FlatTreePtr change = changeTable(*run, facts);
        QVERIFY(change != nullptr);
        // Compared before the same tensor of step 2, so the logits have grown by half.
        const auto logits = std::find_if(change->nodes.begin(), change->nodes.end(), [](const FlatNode& node) {
            return node.cells[0].text == QStringLiteral("logits");
        });
        QVERIFY(logits != change->nodes.end());
        QCOMPARE(logits->cells[3].text, QStringLiteral("▲ +12.27"));
        QCOMPARE(*logits->cells[3].delta, 1);
        const QString text = oomText(*run, facts);
        QVERIFY(text.startsWith(QStringLiteral("Step 3 asked for 36.82\u00A0GiB to hold grad_logits.")));
        QVERIFY(text.contains(QStringLiteral("logits: 36.82\u00A0GiB")));
        QCOMPARE(oomSummary(*run, 7).event.requested, std::uint64_t(0)); // no such failure
    }

    /// What an arena keeps for the next step is nobody's fragmentation, and a total is what was held of the budget.
    void idleArenaHasItsNameAndItsRow() {
        constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
        test::TimelineScript script;
        const std::uint64_t phase = script.addScope(base::ScopeKind::Phase, "prefill", 0, 10);
        script.alloc(base::MemoryCategory::Weights, "w", 4.0 * kGiB, 0, -1, phase);
        for (int step = 0; step < 2; ++step) {
            const std::uint64_t id =
                script.addScope(base::ScopeKind::Step, "prefill", 1 + 4 * step, 3 + 4 * step, phase, step);
            script.alloc(base::MemoryCategory::KvCache, "kv_cache.full", 1.0 * kGiB, 0.5 + 4 * step, -1, phase);
            script.alloc(base::MemoryCategory::Activations, "hidden", 1.0 * kGiB, 2 + 4 * step, 3 + 4 * step, id);
        }
        base::OutOfMemoryEvent oom;
        oom.time = seconds(9);
        oom.requested = 2 * kGiB;
        oom.budget = 10 * kGiB;
        oom.reserved = 9 * kGiB;
        oom.largestFree = kGiB;
        oom.scope.value = phase;
        oom.category = base::MemoryCategory::KvCache;
        oom.name.value = script.intern("kv_cache.full");
        oom.arena.value = script.intern("arena of the prefill step");
        oom.arenaBytes = 3 * kGiB;
        oom.arenaIdle = 3 * kGiB;
        script.finish(10);
        script.add(oom);
        const auto run = script.timeline();
        const OomSummary facts = oomSummary(*run, 0);
        QCOMPARE(facts.asker, QStringLiteral("Step 2"));
        QVERIFY2(facts.cause.contains(QStringLiteral("3.00\u00A0GiB are reserved by the arena of the prefill step, of "
                                                     "which 100\u00A0% are idle at this moment.")),
                 qPrintable(facts.cause));
        QVERIFY2(facts.cause.contains(QStringLiteral("Prefill from token 0 on, before its first op, 9")),
                 qPrintable(facts.cause));
        QVERIFY(!facts.cause.contains(QStringLiteral("block")));
        const FlatTreePtr holders = holdersTree(*run, facts, profiler::GroupBy::Category);
        const FlatNode& total = holders->nodes.back();
        QCOMPARE(total.cells[1].raw.toULongLong(), oom.reserved);
        qulonglong sum = 0;
        for (const FlatNode& node : holders->nodes) {
            sum += node.parent < 0 && !node.last ? node.cells[1].raw.toULongLong() : 0;
        }
        QCOMPARE(sum, oom.reserved);
        const FlatTreePtr change = changeTable(*run, facts); // since just before step 1 got its part of the cache
        QCOMPARE(change->nodes.front().cells[0].text, QStringLiteral("kv_cache"));
        QCOMPARE(change->nodes.front().cells[3].text, QStringLiteral("▲ +1.00"));
        FlatTreeModel model;
        model.setTree(holders);
        const QStringList lines = asTableText(model).split(QLatin1Char('\n'));
        QCOMPARE(lines.front(), QStringLiteral("Holder\tSize, bytes\tShare, percent\tShare, of 1"));
        QCOMPARE(lines.size(), static_cast<qsizetype>(holders->nodes.size() + 1));
        QVERIFY(lines.back().startsWith(QStringLiteral("total\t%1\t").arg(oom.reserved)));
    }

    void whatLivesToTheEndIsNotFreedInAnOp() {
        test::TimelineScript script;
        const std::uint64_t phase = script.addScope(base::ScopeKind::Phase, "decode", 0, 10);
        const std::uint64_t step = script.addScope(base::ScopeKind::Step, "decode", 1, 10, phase, 0);
        script.addScope(base::ScopeKind::Op, "Sample", 9, 10, step);
        script.alloc(base::MemoryCategory::Weights, "w", 100, 0, 10, phase);
        script.alloc(base::MemoryCategory::Workspace, "Sample.scratch", 50, 9, 10, step);
        script.finish(10);
        const auto run = script.timeline();
        const auto rowOf = [&](std::string_view name) {
            const auto rows = run->memory().allocations();
            std::size_t index = 0;
            while (run->text(rows[index].name) != name) {
                ++index;
            }
            return index;
        };
        QCOMPARE(allocationLinks(*run, rowOf("w")).back().kind == AllocationLink::Kind::Freed, false);
        const auto links = allocationLinks(*run, rowOf("Sample.scratch"));
        QCOMPARE(links.front().name, QStringLiteral("Sample")); // not the step that it was made in
        QVERIFY(links.back().kind == AllocationLink::Kind::Freed);
    }

    /// All ops run while a weight lives; those that read it are the ones of its module.
    void aWeightIsReadByTheOpsOfItsModule() {
        test::TimelineScript script;
        const std::uint64_t load = script.addScope(base::ScopeKind::Phase, "load", 0, 1);
        script.alloc(base::MemoryCategory::Weights, "lm_head.weight", 100, 0, 100, load);
        script.alloc(base::MemoryCategory::Weights, "model.layers.1.self_attn.q_proj.weight", 100, 0, 100, load);
        script.alloc(base::MemoryCategory::Weights, "model.layers.1.post_attention_layernorm.weight", 10, 0, 100, load);
        std::vector<std::uint64_t> heads, projections;
        const std::uint64_t phase = script.addScope(base::ScopeKind::Phase, "prefill", 1, 100);
        for (const base::TimeNs begin : {10, 50}) {
            const std::uint64_t step = script.addScope(base::ScopeKind::Step, "prefill", begin, begin + 30, phase, 0);
            script.addScope(base::ScopeKind::Op, "Embedding", begin, begin + 1, step);
            for (const int layer : {0, 1}) {
                const base::TimeNs at = begin + 2 + 5 * layer;
                const std::uint64_t scope = script.addScope(base::ScopeKind::Layer, "layer", at, at + 4, step, layer);
                projections.push_back(script.addScope(base::ScopeKind::Op, "QkvProject", at, at + 1, scope));
                script.addScope(base::ScopeKind::Op, "OutProject", at + 2, at + 3, scope);
            }
            heads.push_back(script.addScope(base::ScopeKind::Op, "LmHead", begin + 20, begin + 21, step));
        }
        script.finish(100);
        const auto run = script.timeline();
        const auto readersOf = [&](std::string_view name) {
            std::vector<std::uint64_t> scopes;
            const auto rows = run->memory().allocations();
            std::size_t index = 0;
            while (run->text(rows[index].name) != name) {
                ++index;
            }
            for (const AllocationLink& link : allocationLinks(*run, index)) {
                if (link.kind == AllocationLink::Kind::Read || link.kind == AllocationLink::Kind::Ran) {
                    scopes.push_back(link.scope);
                }
            }
            return scopes;
        };
        QCOMPARE(readersOf("lm_head.weight"), std::vector<std::uint64_t>{heads[0]});
        QCOMPARE(readersOf("model.layers.1.self_attn.q_proj.weight"), std::vector<std::uint64_t>{projections[1]});
        QVERIFY(readersOf("model.layers.1.post_attention_layernorm.weight").empty()); // rather none than wrong ones
    }

    /// The planner's answers, by a run that needs 10 bytes and 2 for each token, and one byte for a new token.
    void whatWouldHaveFitted() {
        FitChanges changes(R"({"workload": "generate", "backend": "meta", "prompt_length": 100, "max_new_tokens": 8})",
                           100);
        int asked = 0;
        while (const auto question = changes.question()) {
            const nlohmann::json spec = nlohmann::json::parse(*question);
            const std::uint64_t chunk = spec.value("prefill_chunk", 0) > 0 ? 0 : 30;
            const std::uint64_t token = spec.value("kv_dtype", "auto") == "int8" ? 1 : 2;
            const std::uint64_t need = 10 + chunk + token * spec["prompt_length"].get<std::uint64_t>();
            changes.answer(nlohmann::json{{"peak_reserved_bytes", need}, {"fits", need <= 100}}.dump(), {});
            QVERIFY(++asked < 40);
        }
        QCOMPARE(changes.all().front().peak, std::uint64_t(240));
        QStringList titles;
        for (const FitChange& change : changes.shown()) {
            titles << (change.fits ? QStringLiteral("+") : QStringLiteral("-")) + change.title;
        }
        // Fewer new tokens and fp8 change nothing here. Two changes are tried where none is enough alone, and three
        // that are not enough are shown.
        QCOMPARE(titles, (QStringList{QStringLiteral("+Prompt of 30 tokens instead of 100"),
                                      QStringLiteral("-KV cache in int8 and prefill in steps of 2,048 tokens"),
                                      QStringLiteral("-KV cache in int8 and prefill in steps of 512 tokens"),
                                      QStringLiteral("-KV cache in int8")}));
        QCOMPARE(nlohmann::json::parse(changes.shown().front().experiment)["prompt_length"].get<int>(), 30);
        QVERIFY(FitChanges("no json", 100).all().empty());
        // 16.491 GiB would read 16.49, which is too little.
        QCOMPARE(bytesText(readableBudget(17'707'000'000)), QStringLiteral("16.50\u00A0GiB"));
        QVERIFY(readableBudget(17'707'000'000) >= 17'707'000'000);
    }

    void allocationTable() {
        const auto run = test::makeOutOfMemoryRun();
        AllocationTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setSource(run, {seconds(9), seconds(9.5)});
        QTRY_VERIFY(!model.waiting() && model.rowCount() > 0);
        for (int row = 1; row < model.rowCount(); ++row) { // largest first
            QVERIFY(model.index(row - 1, AllocationTableModel::Size).data(RawRole).toULongLong() >=
                    model.index(row, AllocationTableModel::Size).data(RawRole).toULongLong());
        }
        model.sort(AllocationTableModel::Name, Qt::AscendingOrder);
        QTRY_VERIFY(!model.waiting());
        QVERIFY(model.index(0, 0).data(RawRole).toString() <= model.index(1, 0).data(RawRole).toString());
        model.setSource(nullptr, {});
        QCOMPARE(model.rowCount(), 0);
    }

    void runFactsOfOddJson() {
        sessions::RunInfo run = test::runInfo(1, "x", sessions::RunStatus::Done);
        QCOMPARE(runSummary(run).budget, std::optional<std::uint64_t>(80 * test::kGiB));
        QCOMPARE(runSummary(run).device, QStringLiteral("H200"));
        QCOMPARE(runMetric(run, "peak_bytes"), std::optional<double>(77942965985.0));
        for (const char* odd : {"", "[]", "{\"vram_budget\": \"lots\"}", "{\"model\": 3}",
                                "{\"peak_by_category\": {\"x\": -1}}", "null"}) {
            run.specJson = run.environmentJson = run.metricsJson = odd;
            QVERIFY(!runSummary(run).budget);
            QVERIFY(!runMetric(run, "a.0.b"));
        }
        run.metricsJson = R"({"variants": [{"seconds": 1.5}]})";
        QCOMPARE(runMetric(run, "variants.0.seconds"), std::optional<double>(1.5));
        QVERIFY(!runMetric(run, "variants.1.seconds"));
    }
};

QTEST_MAIN(ModelsTest)
#include "models_test.moc"
