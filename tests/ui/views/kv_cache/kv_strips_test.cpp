// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The strips of the KV cache's curve: turns, page rounding and page pressure, from the events of a run.
#include "ui/views/kv_cache/kv_strips.h"

#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <string>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/kv_cache/kv_run.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/views/kv_cache/kv_curve_page.h"
#include "ui/views/kv_cache/kv_view.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/step_strip.h"

using namespace vitrine;
using test::kToken;

namespace {

constexpr int kPrompt = 600, kTokens = 1000;

/// A prompt of 600 tokens that is read in half a second, then a token each millisecond.
ui::TimelinePtr turn() {
    test::RecordedRun run;
    run.scope(base::ScopeKind::Phase, "prefill", 1, 1.5);
    run.scope(base::ScopeKind::Phase, "decode", 1.5, 2);
    const auto sample = [&](int tokens, double time) {
        run.counter("kv_bytes.full", time, static_cast<double>((tokens + 63) / 64 * 64) * kToken);
        run.counter("kv_bytes.sliding", time, 127.0 * kToken);
        run.counter("kv_tokens", time, tokens);
    };
    sample(kPrompt, 1.5);
    for (int token = kPrompt + 1; token <= kTokens; ++token) {
        sample(token, 1.5 + 0.001 * (token - kPrompt));
    }
    return run.timeline();
}

sessions::RunInfo turnRun() {
    sessions::RunInfo run = test::generateRun(true);
    run.metricsJson.pop_back();
    run.metricsJson += R"(, "prompt_tokens": 600, "generated_tokens": 401})";
    run.specJson = R"({"vitrine": 1, "workload": "generate", "model": "synthetic:gpt-oss-20b", "prompt_length": 600})";
    return run;
}

} // namespace

class KvStripsTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void turns() {
        const ui::KvSummary facts = ui::kvSummary(turnRun(), turn().get());
        QVERIFY(facts.turn);
        QCOMPARE(facts.turn->promptEnd - facts.turn->begin, base::TimeNs(500'000'000));
        const ui::StepStripData band = ui::kvTurnBand(facts, 0, 1060);
        QCOMPARE(band.bands.size(), std::size_t(2));
        QCOMPARE(band.bands[0].to, 600.0);
        QCOMPARE(band.bands[1].to, 1000.0);
        QCOMPARE(band.bands[1].text, QStringLiteral("answer, 401 tokens"));
    }

    /// Right after a page was taken most of it is room; a full page has none. A ring adds to it until it is full.
    void rounding() {
        const ui::KvSummary facts = ui::kvSummary(turnRun(), turn().get());
        const ui::StepStripData strip = ui::kvRoundingStrip(facts, kTokens, 1060);
        const auto at = [&](int tokens) { return strip.steps[static_cast<std::size_t>(tokens - 1)].y(); };
        QCOMPARE(strip.steps.size(), std::size_t(kTokens));
        QCOMPARE(at(128), 0.0);
        QCOMPARE(at(129), 63.0 * kToken);
        QCOMPARE(at(64), 63.0 * kToken); // of the ring alone
        QCOMPARE(at(1), (63.0 + 126.0) * kToken);
        QCOMPARE(strip.stop, double(kTokens));
        QVERIFY(ui::kvRoundingText(facts).startsWith(QStringLiteral("now 576"))); // 24 tokens of 24 KiB
        auto batch = turnRun();
        batch.metricsJson = test::generateRun(true, 4).metricsJson;
        QVERIFY(ui::kvRoundingStrip(ui::kvSummary(batch, turn().get()), kTokens, 1060).steps.empty());
    }

    /// Pages over time, and how many the budget leaves; nothing where the run recorded no phases.
    void pressure() {
        const ui::KvSummary facts = ui::kvSummary(turnRun(), turn().get());
        const std::uint64_t page = 64 * kToken;
        const ui::KvRoom room{60 * page + 127 * kToken, 20 * page};
        const ui::StepStripData strip = ui::kvPressureStrip(facts, room);
        QCOMPARE(strip.steps.front(), QPointF(1.5, 10)); // 600 tokens
        QCOMPARE(strip.steps.back().y(), 16.0);
        QVERIFY(strip.limit);
        QCOMPARE(strip.limit->value, 40.0);
        QCOMPARE(ui::kvPressureText(facts, room),
                 QStringLiteral("16 of the 40 pages that the budget leaves, 40.0\u00A0%"));
        QCOMPARE(ui::kvPressureText(facts, std::nullopt), QStringLiteral("16 pages"));
        auto unknown = facts;
        unknown.turn.reset();
        QVERIFY(ui::kvPressureStrip(unknown, room).steps.empty());
    }

    /// A button of a change opens the form with that one option changed.
    void triesAChange() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {turnRun()}, {{1, turn()}});
        document.setRunA(1);
        QTRY_VERIFY(view.settled() && !view.facts().empty());
        QVERIFY(view.curvePage()->turnBand()->isVisible());
        QVERIFY(view.curvePage()->rounding()->isVisible());
        QVERIFY(view.curvePage()->pressure()->isVisible());
        const std::vector<ui::KvChange> changes = ui::kvChanges(view.facts());
        const auto page = std::ranges::find_if(
            changes, [](const ui::KvChange& change) { return change.name == QStringLiteral("Pages of 16"); });
        QVERIFY(page != changes.end());
        QVERIFY(view.tryButton(0) == nullptr); // as it is
        QPushButton* button = view.tryButton(static_cast<int>(page - changes.begin()));
        QVERIFY(button != nullptr);
        QSignalSpy wanted(&view, &ui::View::experimentWanted);
        button->click();
        QCOMPARE(wanted.size(), 1);
        const QString experiment = wanted[0][0].toString().remove(QLatin1Char(' '));
        QVERIFY2(experiment.contains(QStringLiteral("\"page_size\":16")), qPrintable(experiment));
        view.resize(1080, 500); // low: strips give way
        QTRY_VERIFY(!view.curvePage()->pressure()->isVisible());
    }

    /// The limit is drawn above the steps, the steps from the axis up.
    void paints() {
        ui::StepStrip strip(QStringLiteral("Pages"), nullptr);
        ui::StepStripData data;
        data.end = data.stop = 10;
        data.top = 10;
        data.steps = {{0, 2}, {5, 8}};
        data.style = [](const ui::ThemeTokens& t) { return t.category(base::MemoryCategory::Weights); };
        strip.setData(data);
        const QImage image = strip.picture({272, 101}, 1); // the plot: 48 to 248, 4 to 100
        QCOMPARE(image.pixelColor(100, 50), ui::themeTokens().canvas);
        QVERIFY(image.pixelColor(100, 90) != ui::themeTokens().canvas);
        QVERIFY(image.pixelColor(200, 50) != ui::themeTokens().canvas);
    }
};

QTEST_MAIN(KvStripsTest)
#include "kv_strips_test.moc"
