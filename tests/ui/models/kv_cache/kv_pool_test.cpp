// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The pool of pages over time: every instant against brute force, prediction against measurement, what curves keep.
#include "ui/models/kv_cache/kv_pool.h"

#include <QTest>
#include <algorithm>

#include "tests/ui/models/kv_cache/kv_run.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/views/kv_cache/kv_curve_chart.h"
#include "ui/views/kv_cache/kv_pool_panel.h"

using namespace vitrine;
using test::generateRun;
using test::kToken;

class KvPoolTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void poolAgainstBruteForce() {
        test::RecordedRun run;
        std::vector<std::vector<ui::KvPoolPanel>> now(2, std::vector<ui::KvPoolPanel>(40));
        std::vector<std::pair<base::TimeNs, std::vector<std::vector<ui::KvPoolPanel>>>> states;
        unsigned random = 7;
        for (int i = 0; i < 9000; ++i) { // beyond two whole states
            random = random * 1664525U + 1013904223U;
            const auto group = static_cast<std::size_t>(random >> 31U),
                       page = static_cast<std::size_t>((random >> 8U) % 40);
            const int kind = static_cast<int>((random >> 16U) % 4);
            ui::KvPoolPanel next;
            next.state = kind == 0   ? base::PageState::Free
                         : kind == 1 ? base::PageState::Cached
                                     : base::PageState::Used;
            next.owner = kind >= 2 ? static_cast<int>(random % 9) : -1;
            next.sequences = kind >= 2 ? kind - 1 : 0;
            now[group][page] = next;
            run.record(base::KvPageEvent{1000 + i * 10, static_cast<int>(group), static_cast<int>(page), next.state,
                                         next.owner, next.sequences});
            if (i % 500 == 3 || i == 8999) {
                states.emplace_back(1000 + i * 10, now);
            }
        }
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(generateRun(true), *timeline);
        QVERIFY(pool != nullptr);
        QCOMPARE(pool->groups()[0].name, QStringLiteral("sliding")); // in the order of the run's metrics
        for (const auto& [time, wanted] : states) {
            const auto pages = pool->at(time);
            double used = 0, shared = 0, cached = 0;
            for (std::size_t g = 0; g < 2; ++g) {
                for (std::size_t i = 0; i < 40; ++i) {
                    const bool there = i < pages[g].size();
                    QCOMPARE(there ? pages[g][i].state : base::PageState::Free, wanted[g][i].state);
                    QCOMPARE(there ? pages[g][i].owner : -1,
                             wanted[g][i].state == base::PageState::Used ? wanted[g][i].owner : -1);
                    used += wanted[g][i].state == base::PageState::Used ? 1 : 0;
                    shared += wanted[g][i].shared() ? 1 : 0;
                    cached += wanted[g][i].state == base::PageState::Cached ? 1 : 0;
                }
            }
            QCOMPARE(*pool->used().at(time), used);
            QCOMPARE(*pool->shared().at(time), shared);
            QCOMPARE(*pool->cached().at(time), cached);
        }
        QCOMPARE(*pool->change(1000, 1), 1010);
        QCOMPARE(*pool->change(1005, -1), 1000);
        QVERIFY(!pool->change(1000, -1));
        QVERIFY(!pool->change(1000 + 8999 * 10, 1));
        QCOMPARE(*pool->used().at(pool->fullest()), pool->used().largest());
    }

    void poolKeepsWhatTokensNeed() {
        // One request of 100 prompt and 3 answer tokens in two pages of 64: what is kept grows with its tokens.
        test::RecordedRun run;
        run.record(base::RequestEvent{10, 0, base::RequestChange::Arrived, -1, -1, 100, {}});
        run.record(base::RequestEvent{20, 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.record(base::KvPageEvent{20, 1, 0, base::PageState::Used, 0, 1});
        run.record(base::KvPageEvent{20, 1, 1, base::PageState::Used, 0, 1});
        run.record(base::TokenEvent{30, 0, 100, 5, 0});
        run.record(base::RequestEvent{30, 0, base::RequestChange::FirstToken, 0, 0, 1, {}});
        run.record(base::TokenEvent{40, 0, 101, 5, 0});
        run.record(base::TokenEvent{50, 0, 102, 5, 0});
        run.record(base::RequestEvent{50, 0, base::RequestChange::Finished, 0, 0, 3, {}});
        run.record(base::KvPageEvent{50, 1, 0, base::PageState::Free, -1, 0});
        run.record(base::KvPageEvent{50, 1, 1, base::PageState::Free, -1, 0});
        run.record(base::KvPageEvent{60, 0, 0, base::PageState::Free, -1, 0});
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(generateRun(true), *timeline);
        QCOMPARE(pool->bytesAt(20).full, 128 * kToken);
        QCOMPARE(pool->bytesAt(20).keptFull, 100 * kToken);
        QCOMPARE(pool->bytesAt(35).keptFull, 100 * kToken);
        QCOMPARE(pool->bytesAt(45).keptFull, 101 * kToken);
        QCOMPARE(pool->bytesAt(45).noWindow, 2 * 101 * kToken);
        QCOMPARE(pool->bytesAt(55).held(), std::uint64_t(0));
        QCOMPARE(pool->bytesAt(55).kept(), std::uint64_t(0));
    }

    void predictedLiesOnMeasured_data() {
        QTest::addColumn<base::TimeNs>("length"); // of a step; one begins every 10
        QTest::addColumn<base::TimeNs>("commit"); // from a step's begin
        QTest::addColumn<base::TimeNs>("ahead");  // the same of steps after another one
        QTest::addColumn<base::TimeNs>("rest");   // from a step's end to what is reported when nothing runs
        QTest::newRow("at the end of each step") << static_cast<base::TimeNs>(8) << static_cast<base::TimeNs>(7)
                                                 << static_cast<base::TimeNs>(7) << static_cast<base::TimeNs>(1);
        QTest::newRow("on a virtual clock") << static_cast<base::TimeNs>(10) << static_cast<base::TimeNs>(10)
                                            << static_cast<base::TimeNs>(10) << static_cast<base::TimeNs>(0);
        QTest::newRow("launched ahead") << static_cast<base::TimeNs>(10) << static_cast<base::TimeNs>(1)
                                        << static_cast<base::TimeNs>(-7) << static_cast<base::TimeNs>(1);
    }

    /// Pages of one token: what a step holds and what its formula says are the same bytes, whenever the run reported
    /// them.
    void predictedLiesOnMeasured() {
        QFETCH(base::TimeNs, length);
        QFETCH(base::TimeNs, commit);
        QFETCH(base::TimeNs, ahead);
        QFETCH(base::TimeNs, rest);
        using base::RequestChange;
        test::RecordedRun run;
        const auto begin = [](int step) { return static_cast<base::TimeNs>(100 + step * 10 + (step > 2 ? 50 : 0)); };
        const auto border = [&](base::TimeNs time, int request, RequestChange phase, int step, int tokens) {
            run.record(base::RequestEvent{time, request, phase, 0, step, tokens, {}});
        };
        const auto cache = [&](base::TimeNs time, int before, int after) {
            run.counter("kv_tokens", static_cast<double>(time) * 1e-9, after);
            for (int page = before; page < after; ++page) {
                run.record(base::KvPageEvent{time, 0, page, base::PageState::Used, page, 1});
            }
            for (int page = after; page < before; ++page) {
                run.record(base::KvPageEvent{time, 0, page, base::PageState::Free, -1, 0});
            }
        };
        const auto sampled = [&](int step, int request) {
            run.record(base::TokenEvent{begin(step) + length, request, 0, 5, 0});
        };
        // Two requests of 3 and 5 tokens, the second one's prompt cut by the end of step 0; after a rest one of 2.
        border(90, 0, RequestChange::Arrived, -1, 3);
        border(90, 1, RequestChange::Arrived, -1, 5);
        border(90, 2, RequestChange::Arrived, -1, 2);
        border(100, 0, RequestChange::Admitted, 0, 0);
        border(100, 1, RequestChange::Admitted, 0, 0);
        const int held[] = {5, 9, 11, 2};
        for (int step = 0; step < 4; ++step) {
            const bool later = step == 1 || step == 2;
            cache(begin(step) + (later ? ahead : commit), step == 0 || step == 3 ? 0 : held[step - 1], held[step]);
            base::BatchStepEvent event;
            event.begin = begin(step);
            event.end = begin(step) + length;
            event.index = step;
            event.prefillTokens = step == 0 ? 5 : step == 1 ? 3 : step == 3 ? 2 : 0;
            run.record(event);
            if (step == 2) {
                cache(event.end + rest, 11, 0);
            }
        }
        const auto reads = [&](int step, int steps, int request, int tokens) {
            run.record(base::SlotSpanEvent{begin(step), begin(step + steps - 1) + length, step, steps, request, request,
                                           base::SlotState::Prefill, tokens, 0});
        };
        reads(0, 1, 0, 3);
        reads(0, 2, 1, 5);
        reads(3, 1, 2, 2);
        sampled(0, 0);
        sampled(1, 0);
        sampled(1, 1);
        sampled(2, 0);
        sampled(2, 1);
        border(begin(2) + length, 0, RequestChange::Finished, 2, 3);
        border(begin(2) + length, 1, RequestChange::Finished, 2, 2);
        border(begin(3), 2, RequestChange::Admitted, 3, 0);
        sampled(3, 2);
        border(begin(3) + length, 2, RequestChange::Finished, 3, 1);
        cache(begin(3) + length + rest, 2, 0);

        sessions::RunInfo info = generateRun(false);
        info.metricsJson = R"({"kv_cache": {"groups": [
            {"name": "full", "layers": [0], "window": 0, "bytes_per_token": 24576, "page_tokens": 1}]}})";
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(info, *timeline);
        QVERIFY(pool != nullptr);
        for (int step = 0; step < 4; ++step) {
            for (base::TimeNs at = begin(step); at < begin(step) + length; ++at) {
                QCOMPARE(pool->bytesAt(at).held(), held[step] * kToken);
                QCOMPARE(pool->bytesAt(at).kept(), held[step] * kToken);
            }
        }
        for (base::TimeNs at = begin(2) + length + rest; at < begin(3); ++at) {
            QCOMPARE(pool->bytesAt(at).held(), std::uint64_t(0));
            QCOMPARE(pool->bytesAt(at).kept(), std::uint64_t(0));
        }
    }

    /// Bytes come out whole, and the curve of waste is what each instant says, also where only tokens came.
    void poolNumbersAreExact() {
        ui::BatchCurve curve;
        curve.add(0, 39'535'509'505.0);
        curve.setEnd(10);
        curve.finish();
        QCOMPARE(*curve.at(0), 39'535'509'505.0);
        QCOMPARE(curve.largest(), 39'535'509'505.0);

        test::RecordedRun run;
        run.record(base::RequestEvent{10, 0, base::RequestChange::Arrived, -1, -1, 10, {}});
        run.record(base::RequestEvent{20, 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.record(base::KvPageEvent{20, 1, 0, base::PageState::Used, 0, 1});
        for (int i = 0; i < 40; ++i) {
            run.record(base::TokenEvent{30 + i, 0, 10 + i, 5, 0});
        }
        run.record(base::KvPageEvent{100, 1, 0, base::PageState::Free, -1, 0});
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(generateRun(true), *timeline);
        for (base::TimeNs at = 20; at < pool->end(); ++at) {
            QCOMPARE(*pool->waste().at(at), pool->bytesAt(at).waste());
        }
        QVERIFY(pool->bytesAt(69).waste() < pool->bytesAt(20).waste());
        QCOMPARE(pool->requestAt(0, 34)->generated, 5);
        QCOMPARE(pool->requestAt(0, 34)->prompt, 10);
        QVERIFY(!pool->requestAt(9, 34));
    }

    /// A curve over many changes is drawn through the least and the most of each stretch, and as a stair.
    void curveKeepsExtremes() {
        test::RecordedRun run;
        constexpr int kChanges = 30'000;
        for (int i = 0; i < kChanges; ++i) { // a peak of two pages now and then
            const bool peak = i % 997 == 500;
            run.record(base::KvPageEvent{1000 + i * 100, 1, 0, base::PageState::Used, 0, 1});
            run.record(base::KvPageEvent{1000 + i * 100, 1, 1, peak ? base::PageState::Used : base::PageState::Free,
                                         peak ? 0 : -1, peak ? 1 : 0});
        }
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(generateRun(true), *timeline);
        QVERIFY(pool->moments().size() <= 2001);
        QVERIFY(std::ranges::is_sorted(pool->moments()));
        const auto peaks = std::ranges::count_if(
            pool->moments(), [&](base::TimeNs at) { return pool->bytesAt(at).held() == 2 * 64 * kToken; });
        QCOMPARE(peaks, qsizetype(30));
        const ui::KvCurveChart curve = ui::kvCurveChart(*pool, {true, true});
        const std::vector<QPointF>& line = curve.series.front().points;
        for (std::size_t i = 1; i < line.size(); ++i) {
            QVERIFY(line[i].x() == line[i - 1].x() || line[i].y() == line[i - 1].y());
        }
    }

    /// Labels of a short stretch differ, and each stands where it says.
    void shortCurvesHaveReadableTicks() {
        test::RecordedRun run;
        for (int i = 0; i < 30; ++i) {
            run.record(base::KvPageEvent{24'000'000 + i * 1'000'000, 1, i, base::PageState::Used, 0, 1});
        }
        const auto timeline = run.timeline();
        const ui::KvCurveChart curve = ui::kvCurveChart(*ui::KvPool::make(generateRun(true), *timeline), {true, true});
        QVERIFY(curve.x.ticks.size() > 3);
        for (std::size_t i = 0; i < curve.x.ticks.size(); ++i) {
            QVERIFY(std::abs(curve.x.ticks[i].second.toDouble() - curve.x.ticks[i].first) < 1e-9);
            QVERIFY(i == 0 || curve.x.ticks[i].second != curve.x.ticks[i - 1].second);
        }
    }

    void paddingHasAColourOfItsOwn() {
        for (const auto mode : {ui::Theme::Mode::Dark, ui::Theme::Mode::Light}) {
            ui::Theme::instance().setMode(mode);
            const auto styles = ui::kvPoolStyles(ui::themeTokens());
            const QColor padding = styles.back().fill;
            for (std::size_t i = 0; i + 1 < styles.size(); ++i) {
                const QColor fill = styles[i].fill;
                const int apart = std::abs(fill.red() - padding.red()) + std::abs(fill.green() - padding.green()) +
                                  std::abs(fill.blue() - padding.blue());
                QVERIFY2(apart > 60, qPrintable(fill.name()));
            }
        }
    }
};

QTEST_MAIN(KvPoolTest)
#include "kv_pool_test.moc"
