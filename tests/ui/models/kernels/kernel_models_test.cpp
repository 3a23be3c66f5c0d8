// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Kernels view computes: trace rows, statistics, icicle, variants, and the painter of a million kernels.
#include <QElapsedTimer>
#include <QTest>
#include <nlohmann/json.hpp>

#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/scope_facet.h"
#include "tests/profiler/timeline/timeline_script.h"
#include "tests/ui/models/kernels/kernel_run.h"
#include "ui/models/common/format.h"
#include "ui/models/kernels/kernel_stats.h"
#include "ui/models/kernels/kernel_trace.h"
#include "ui/models/kernels/kernel_variants.h"
#include "ui/widgets/plots/flame_plot.h"
#include "ui/widgets/plots/kernel_roofline.h"
#include "ui/widgets/timeline/trace_painter.h"

using namespace vitrine;
using test::ns;
using ui::TraceTrack;

namespace {

constexpr ui::TimeRange kAll{0, 1'000'000'000'000};

const profiler::FlameNode* nodeNamed(const profiler::FlameTree& flame, const QString& name) {
    const auto found = std::ranges::find(flame.nodes, name.toStdString(), &profiler::FlameNode::name);
    return found == flame.nodes.end() ? nullptr : &*found;
}

QString cellOf(const ui::FlatTree& tree, const QString& row, int column) {
    for (const ui::FlatNode& node : tree.nodes) {
        if (node.cells[0].text == row) {
            return node.cells[static_cast<std::size_t>(column)].text;
        }
    }
    return QStringLiteral("no such row");
}

} // namespace

class KernelModelsTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void rowsHoldEverythingOnceWithoutOverlap() {
        const auto timeline = test::makeKernelRun();
        const ui::KernelTracePtr trace = ui::kernelTrace(*timeline);
        std::uint64_t spans = 0;
        for (const TraceTrack& track : trace->tracks) {
            std::uint64_t here = 0;
            for (const ui::TraceRow& row : track.rows) {
                here += row.spans.size();
                for (std::size_t i = 1; i < row.spans.size(); ++i) {
                    QVERIFY(row.spans[i - 1].end <= row.spans[i].begin);
                }
            }
            QCOMPARE(here, track.count);
            QCOMPARE(track.cut, std::uint64_t(0));
            spans += track.kind == TraceTrack::Kind::Scopes ? 0 : here;
        }
        QCOMPARE(spans, std::uint64_t(timeline->kernels().spans().size()));
        QCOMPARE(trace->kernels, std::uint64_t(2 + 3 * 4));
        const TraceTrack* kernels = trace->track(TraceTrack::Kind::Kernels);
        QVERIFY(kernels != nullptr);
        QCOMPARE(kernels->rows.size(), std::size_t(2)); // a kernel begins before the one ahead of it ends
        const TraceTrack* host = trace->track(TraceTrack::Kind::Host);
        QVERIFY(host != nullptr);
        QCOMPARE(host->rows.front().title, QStringLiteral("Waits"));
        QVERIFY(std::ranges::is_sorted(trace->eventBegins));
    }

    void tooManyOverlapsAreCutAndCounted() {
        test::RecordedRun run;
        for (int i = 0; i < 10; ++i) {
            run.span("Kernels", "k", 0.001 * i, 1, 0);
        }
        const ui::KernelTracePtr trace = ui::kernelTrace(*run.timeline());
        const TraceTrack* kernels = trace->track(TraceTrack::Kind::Kernels);
        QCOMPARE(kernels->count, std::uint64_t(10));
        QCOMPARE(kernels->cut, std::uint64_t(6)); // four rows
        for (const ui::TraceRow& row : kernels->rows) {
            QVERIFY(std::ranges::is_sorted(row.spans, {}, &ui::TraceSpan::end));
        }
    }

    void searchesFindWhatWalkingFinds() {
        ui::TraceRow row;
        for (int i = 0; i < 1000; ++i) {
            row.spans.push_back({i * 10, i * 10 + (i % 7), 0, 0, -1, -1, -1});
        }
        for (base::TimeNs time = -5; time < 10'020; time += 3) {
            std::size_t walked = 0;
            while (walked < row.spans.size() && row.spans[walked].end <= time) {
                ++walked;
            }
            QCOMPARE(row.firstEndingAfter(time), walked);
            for (const std::size_t from : {std::size_t{0}, walked / 2, walked}) {
                QCOMPARE(row.firstEndingAfter(time, from), walked);
            }
            const auto at = row.at(time);
            QCOMPARE(at.has_value(), walked < row.spans.size() && row.spans[walked].begin <= time);
        }
        QCOMPARE(row.firstEndingAfter(5, 1000), std::size_t(1000));
    }

    void opsLeadToTheirKernels() {
        const auto timeline = test::makeKernelRun();
        const ui::KernelTracePtr trace = ui::kernelTrace(*timeline);
        const TraceTrack& scopes = trace->tracks.front();
        std::size_t ops = 0;
        for (const ui::TraceRow& row : scopes.rows) {
            for (const ui::TraceSpan& span : row.spans) {
                const auto place = trace->placeOfScope(span.scope);
                QVERIFY(place.has_value());
                QCOMPARE(scopes.rows[place->row].spans[place->index].begin, span.begin);
                if (ui::traceName(*timeline, span) == QLatin1String("ExpertMlp")) {
                    const auto launched = trace->kernelsOf(span.scope);
                    QCOMPARE(launched.size(), std::size_t(2));
                    const TraceTrack& kernels = *trace->track(TraceTrack::Kind::Kernels);
                    QVERIFY(kernels.rows[launched[0].row].spans[launched[0].index].begin <
                            kernels.rows[launched[1].row].spans[launched[1].index].begin);
                    ++ops;
                }
            }
        }
        QCOMPARE(ops, std::size_t(4));
        QVERIFY(trace->kernelsOf(123'456).empty());
        QVERIFY(!trace->placeOfScope(123'456));
    }

    void opsOfReplayedGraphsStandAtTheirKernels() {
        // The template puts the op after its kernel: the op takes the kernel's place, cut at the next op's first one.
        test::RecordedRun run;
        const auto step = run.scope(base::ScopeKind::Step, "decode", 0, 1, 0, 3);
        const auto layer = run.scope(base::ScopeKind::Layer, "layer", 0.8, 0.95, step, 0);
        const auto first = run.scope(base::ScopeKind::Op, "Route", 0.8, 0.85, layer);
        const auto second = run.scope(base::ScopeKind::Op, "ExpertMlp", 0.85, 0.95, layer);
        run.span("Kernels", "route_token", 0.1, 0.3, 0, first);
        run.span("Kernels", "mxfp4_gate_up", 0.2, 0.6, 0, second);
        const ui::KernelTracePtr trace = ui::kernelTrace(*run.timeline());
        QCOMPARE(trace->projected, std::uint64_t(1));
        const auto at = [&](std::uint64_t scope) {
            const auto place = trace->placeOfScope(scope);
            const ui::TraceSpan& span = trace->tracks.front().rows[place->row].spans[place->index];
            return ui::TimeRange{span.begin, span.end};
        };
        QVERIFY(at(first) == (ui::TimeRange{ns(0.1), ns(0.2)}));
        QVERIFY(at(second) == (ui::TimeRange{ns(0.2), ns(0.6)}));
        QVERIFY(at(layer) == (ui::TimeRange{ns(0.1), ns(0.6)}));
        QVERIFY(at(step) == (ui::TimeRange{0, ns(1)}));
    }

    /// The decode roofline of a run and its kernels are held against one bandwidth.
    void ceilingsHaveTheBandwidthOfTheRunsRoofline() {
        sessions::RunInfo run = test::kernelRunInfo(1, "builtin");
        run.metricsJson = R"({"dtype": "bfloat16", "roofline": {"bandwidth": 4.4e12}})";
        QCOMPARE(ui::ceilingsOf(run).bytesPerSecond, 4.4e12);
    }

    void tableFiltersAndSums() {
        const auto timeline = test::makeKernelRun();
        const ui::Ceilings ceilings = ui::ceilingsOf(test::kernelRunInfo(1, "builtin"));
        QCOMPARE(ceilings.bytesPerSecond, 4.25e12);
        QCOMPARE(ceilings.flopsPerSecond, 7.9e14);
        const ui::KernelStatsPtr stats = ui::kernelStats(*timeline, ceilings, kAll);
        const ui::FlatTreePtr all = ui::kernelTree(*stats, {});
        QCOMPARE(cellOf(*all, QStringLiteral("total"), ui::KernelCalls), QStringLiteral("14"));
        QCOMPARE(cellOf(*all, QStringLiteral("mxfp4_gate_up"), ui::KernelCalls), QStringLiteral("4"));
        QCOMPARE(cellOf(*all, QStringLiteral("mxfp4_gate_up"), ui::KernelBytes), ui::unknownText()); // one of two
        // 850 MB in 1 ms of a device that moves 4.25 TB/s: a fifth of the roofline.
        QCOMPARE(cellOf(*all, QStringLiteral("qkv_project"), ui::KernelBytes), QStringLiteral("850.0"));
        QCOMPARE(cellOf(*all, QStringLiteral("qkv_project"), ui::KernelOfRoofline), ui::shareText(0.2));
        QCOMPARE(ui::kernelTree(*stats, QStringLiteral("EXPERT"))->nodes.size(), std::size_t(3)); // by op, and the sum
        QVERIFY(ui::kernelTree(*stats, QStringLiteral("nothing"))->nodes.empty());
        const auto qkv = std::ranges::find(stats->dots, QStringLiteral("qkv_project"), &ui::RooflineDot::name);
        QVERIFY(qkv != stats->dots.end());
        QCOMPARE(qkv->intensity, 2.0);
        QVERIFY(std::ranges::find(stats->dots, QStringLiteral("ExpertMlp"), &ui::RooflineDot::name) !=
                stats->dots.end()); // its kernels' work is only known together
    }

    void icicleAddsUp() {
        const auto timeline = test::makeKernelRun();
        const profiler::FlameTreePtr flame = profiler::flameTree(*timeline, kAll.begin, kAll.end);
        QVERIFY(flame->ofKernels);
        QCOMPARE(flame->depth, 5);
        QCOMPARE(flame->nodes.front().calls, std::uint64_t(14));
        std::vector<double> inner(flame->nodes.size());
        for (std::size_t i = 1; i < flame->nodes.size(); ++i) {
            const auto parent = static_cast<std::size_t>(flame->nodes[i].parent);
            QVERIFY(parent < i);
            inner[parent] += flame->nodes[i].length;
            QVERIFY(flame->nodes[i].begin >= flame->nodes[parent].begin);
        }
        for (std::size_t i = 0; i < inner.size(); ++i) {
            QVERIFY(inner[i] == 0 || std::abs(inner[i] - flame->nodes[i].length) < 1);
        }
        const auto items = ui::flameItems(*flame, 0, QSizeF(1000, 400));
        QVERIFY(!items.empty());
        const profiler::FlameNode* decode = nodeNamed(*flame, QStringLiteral("decode"));
        QVERIFY(decode != nullptr);
        const auto number = static_cast<std::size_t>(decode - flame->nodes.data());
        for (const ui::FlameItem& item : ui::flameItems(*flame, number, QSizeF(1000, 400))) {
            QVERIFY(item.rect.left() >= 11.5 && item.rect.right() <= 988.5); // nothing of prefill is left
        }
        const ui::FlatTreePtr table = ui::flameTable(*flame);
        QCOMPARE(table->nodes.size(), flame->nodes.size());
        // Without kernels the ops' own times count.
        const profiler::FlameTreePtr ops = profiler::flameTree(*test::makeCpuRun(), kAll.begin, kAll.end);
        QVERIFY(!ops->ofKernels);
        QCOMPARE(ops->nodes.front().calls, std::uint64_t(2));
    }

    /// A long run has millions of scopes. Each is looked at as it comes, none is looked up, and only those in the
    /// range.
    void longRunsAreWalkedWithoutSearching() {
        constexpr int kSteps = 400, kLayers = 4, kOps = 3;
        test::TimelineScript script;
        const auto phase = script.addScope(base::ScopeKind::Phase, "decode", 0, kSteps);
        for (int step = 0; step < kSteps; ++step) {
            const auto inStep = script.addScope(base::ScopeKind::Step, "decode", step, step + 0.9, phase, step);
            for (int layer = 0; layer < kLayers; ++layer) {
                const double begin = step + 0.2 * layer;
                const auto inLayer =
                    script.addScope(base::ScopeKind::Layer, "layer", begin, begin + 0.2, inStep, layer);
                for (int op = 0; op < kOps; ++op) {
                    const double at = begin + 0.05 * op;
                    const auto inOp =
                        script.addScope(base::ScopeKind::Op, "op " + std::to_string(op), at, at + 0.04, inLayer);
                    script.addScope(base::ScopeKind::Op, "inner", at + 0.01, at + 0.02, inOp);
                }
            }
        }
        script.finish(kSteps);
        const auto built = script.timeline();
        const profiler::RunTimeline& timeline = *built;
        const std::size_t scopes = timeline.scopes().all().size();
        const profiler::FlameTreePtr flame = profiler::flameTree(timeline, kAll.begin, kAll.end);
        QCOMPARE(flame->nodes.front().calls, std::uint64_t(kSteps * kLayers * kOps));
        QCOMPARE(flame->nodes.size(), std::size_t(2 + kLayers * (1 + kOps)));
        const ui::KernelStatsPtr stats = ui::kernelStats(timeline, {}, kAll);
        QCOMPARE(static_cast<double>(stats->ops), flame->nodes.front().length);
        QCOMPARE(ui::kernelTrace(timeline)->ops, std::uint64_t(2 * kSteps * kLayers * kOps));
        QVERIFY2(timeline.scopes().lookups() < scopes / 20, qPrintable(QString::number(timeline.scopes().lookups())));

        base::TimeNs parts = 0;
        for (int part = 0; part < 10; ++part) {
            const ui::TimeRange range{test::seconds(40.03 * part), test::seconds(40.03 * (part + 1))};
            parts += profiler::timeOfOps(timeline, range.begin, range.end);
            QCOMPARE(static_cast<double>(profiler::timeOfOps(timeline, range.begin, range.end)),
                     profiler::flameTree(timeline, range.begin, range.end)->nodes.front().length);
        }
        QCOMPARE(parts, stats->ops); // every op is in one part
    }

    void variantsKnowTheirRivals() {
        const sessions::RunInfo run = test::kernelRunInfo(1, "hopper");
        const ui::VariantListPtr list = ui::variantList(run);
        QVERIFY(!list->cpu && list->note.isEmpty());
        const auto gemm = std::ranges::find(list->used, QStringLiteral("expert_gemm"), &ui::UsedVariant::family);
        QVERIFY(gemm != list->used.end());
        QCOMPARE(gemm->uses.size(), std::size_t(2));
        QCOMPARE(gemm->heaviest().registers, 168);
        QCOMPARE(gemm->heaviest().calls, std::uint64_t(48));
        const auto rivals = list->of(QStringLiteral("expert_gemm"));
        const auto portable = std::ranges::find(rivals, QStringLiteral("builtin/portable"), &ui::Candidate::name);
        QVERIFY(portable != rivals.end() && !portable->used);
        QVERIFY(list->withEntry("expert_gemm_hopper") == &*gemm);
        QVERIFY(list->withEntry("nvjet_sm90") == nullptr);

        const auto spec = nlohmann::json::parse(ui::variantExperiment(run, *portable));
        QCOMPARE(spec["profile"].get<std::string>(), std::string("full"));
        QVERIFY(spec["kernel"] == nlohmann::json::parse(R"(["Route=builtin/block", "expert_gemm=builtin/portable"])"));
        QCOMPARE(spec["model"].get<std::string>(), std::string("synthetic:gpt-oss-20b"));
    }

    void packsThatAreGoneAreSaid() {
        sessions::RunInfo run = test::kernelRunInfo(1, "hopper");
        run.specJson = R"({"workload": "generate", "kernel_pack": ["/no/such/pack"]})";
        const ui::VariantListPtr list = ui::variantList(run);
        QVERIFY(list->note.contains(QStringLiteral("/no/such/pack")));
        QVERIFY(!list->candidates.empty());
        run.metricsJson = R"({"kernels": [1, {"family": 3}, {"family": "x", "arch": "none", "entries": [1]}]})";
        QVERIFY(!ui::variantList(run)->used.empty()); // what is damaged is shown as far as it goes
        run.metricsJson = "no JSON";
        QVERIFY(ui::variantList(run)->used.empty());
    }

    void processorsHaveVariantsToo() {
        sessions::RunInfo run = test::kernelRunInfo(1, "hopper");
        run.metricsJson = "{}";
        run.environmentJson = R"({"backend": "cpu", "cpu": "Xeon", "simd": "cpu-avx512"})";
        const ui::VariantListPtr list = ui::variantList(run);
        QVERIFY(list->cpu);
        QCOMPARE(list->used.front().variant, QStringLiteral("avx512"));
        QCOMPARE(list->candidates.size(), std::size_t(3));
        const auto spec = nlohmann::json::parse(ui::variantExperiment(run, list->candidates[1]));
        QCOMPARE(spec["simd"].get<std::string>(), std::string("avx2"));
        QCOMPARE(spec["kernel"].size(), std::size_t(2)); // as it was
        const ui::KernelStatsPtr stats = ui::kernelStats(*test::makeCpuRun(), {}, kAll);
        QVERIFY(ui::variantTime(list->used.front(), *stats) == ns(1)); // of its ops, each counted once
    }

    void deltasHaveSigns() {
        const auto side = [](const char* variant, double slower) {
            return ui::VariantSide{ui::variantList(test::kernelRunInfo(1, variant)),
                                   ui::kernelStats(*test::makeKernelRun(slower), {}, kAll)};
        };
        const ui::FlatTreePtr alone = ui::variantTree(side("hopper", 1), std::nullopt);
        QCOMPARE(alone->columns.size(), std::size_t(ui::VariantTime + 1));
        const ui::FlatTreePtr both = ui::variantTree(side("hopper", 1), side("portable", 2));
        QCOMPARE(cellOf(*both, QStringLiteral("expert_gemm"), ui::VariantOther), QStringLiteral("builtin/portable"));
        QCOMPARE(cellOf(*both, QStringLiteral("mxfp4_gemv"), ui::VariantDelta), QStringLiteral("▲ 2.00x"));
        QCOMPARE(cellOf(*both, QStringLiteral("qkv_project"), ui::VariantDelta), QStringLiteral("="));
        const ui::FlatTreePtr back = ui::variantTree(side("portable", 2), side("hopper", 1));
        QCOMPARE(cellOf(*back, QStringLiteral("mxfp4_gemv"), ui::VariantDelta), QStringLiteral("▼ 2.00x"));
    }

    void aMillionKernelsAreAFewHundredShapes() {
        test::RecordedRun run;
        const auto step = run.scope(base::ScopeKind::Step, "decode", 0, 10, 0, 0);
        constexpr int kKernels = 1'000'000;
        for (int i = 0; i < kKernels; ++i) {
            run.span("Kernels", "k", i * 1e-5, i * 1e-5 + 8e-6, 0, step);
        }
        const ui::TimelinePtr timeline = run.timeline();
        const ui::KernelTracePtr trace = ui::kernelTrace(*timeline);
        ui::TraceInput input{trace, 1, timeline, {}};
        const ui::PlotFrame frame{QSizeF(1000, 34), 2.0};
        for (const double part : {1.0, 0.1, 1e-3, 1e-5}) {
            const auto length = static_cast<base::TimeNs>(1e10 * part);
            input.axis = ui::AxisMap::ofTime({0, length}, 940);
            QElapsedTimer clock;
            clock.start();
            const ui::TracePicture picture = ui::paintTrace(input, frame, ui::themeTokens());
            qInfo("%g of the run: %lld us, %llu drawn, %llu small, %zu shapes", part, clock.nsecsElapsed() / 1000,
                  static_cast<unsigned long long>(picture.drawn), static_cast<unsigned long long>(picture.small),
                  picture.hits.size());
            // Nothing vanishes, and the shapes are bounded by the pixels.
            QCOMPARE(picture.drawn + picture.small, static_cast<std::uint64_t>(std::ceil(length / 1e4)));
            QVERIFY(picture.hits.size() <= 940);
        }
    }

    void paintersTakeTheThemeAndTheRatio() {
        const auto timeline = test::makeKernelRun();
        const ui::KernelTracePtr trace = ui::kernelTrace(*timeline);
        const ui::TraceInput input{trace, 1, timeline, ui::AxisMap::ofTime({0, timeline->end()}, 940)};
        ui::Theme::instance().setMode(ui::Theme::Mode::Light);
        const QImage light = ui::paintTrace(input, {QSizeF(1000, 34), 1.0}, ui::themeTokens()).image;
        ui::Theme::instance().setMode(ui::Theme::Mode::Dark);
        const QImage dark = ui::paintTrace(input, {QSizeF(1000, 34), 2.0}, ui::themeTokens()).image;
        QCOMPARE(light.size(), QSize(1000, 34));
        QCOMPARE(dark.size(), QSize(2000, 68));
        QVERIFY(light.pixelColor(999, 33) != dark.pixelColor(1999, 67));
        // A kernel has the colour of what its op writes.
        const ui::TracePicture picture = ui::paintTrace(input, {QSizeF(1000, 34), 1.0}, ui::themeTokens());
        const auto box = std::ranges::find_if(picture.hits, [](const ui::TraceHit& hit) { return hit.count == 1; });
        QVERIFY(box != picture.hits.end());
        const QPoint inside(static_cast<int>(box->rect.right()) - 3, static_cast<int>(box->rect.top()) + 2);
        QCOMPARE(picture.image.pixelColor(inside), ui::themeTokens().category(base::MemoryCategory::Activations).fill);
    }

    void emptyTimelinesAreNoError() {
        test::RecordedRun run;
        const auto timeline = run.timeline();
        const ui::KernelTracePtr trace = ui::kernelTrace(*timeline);
        QCOMPARE(trace->kernels + trace->ops, std::uint64_t(0));
        QVERIFY(ui::kernelStats(*timeline, {}, kAll)->dots.empty());
        const profiler::FlameTreePtr flame = profiler::flameTree(*timeline, kAll.begin, kAll.end);
        QVERIFY(ui::flameItems(*flame, 0, QSizeF(100, 100)).empty());
        ui::KernelRoofline plot(QStringLiteral("roofline"), nullptr);
        plot.setDots({}, {});
        QVERIFY(!plot.picture(QSizeF(300, 160), 1).isNull());
    }
};

QTEST_MAIN(KernelModelsTest)
#include "kernel_models_test.moc"
