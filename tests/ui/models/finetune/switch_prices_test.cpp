// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What each memory technique buys: prices by the planner, their table, and the hint.
#include "ui/models/finetune/switch_prices.h"

#include <QTest>

#include "tests/ui/models/finetune/training_script.h"

using namespace vitrine;
using test::TrainingScript;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

sessions::RunInfo plannable(const std::string& options) {
    return test::runInfo(
        1, "finetune", "{}",
        R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:gpt-oss-20b", "backend": "meta",)"
        R"("device_profile": "h100-80gb", "method": "qlora", "prompt_length": 65536, "batch": 1)" +
            options + "}");
}

/// A run of 10 s a step, of which 1 s is for a switch that buys 2 GiB.
ui::SwitchPrices costly(std::uint64_t budget) {
    ui::SwitchPrices prices;
    prices.peak = 20 * kGiB;
    prices.budget = budget;
    prices.seconds = 10;
    ui::SwitchPrice one;
    one.name = QStringLiteral("Tiled MLP");
    one.setting = QStringLiteral("in tiles of the sequence");
    one.key = "tiled_mlp";
    one.other = "off";
    one.on = one.known = one.otherFits = true;
    one.otherPeak = 22 * kGiB;
    one.otherSeconds = 9;
    prices.switches.push_back(one);
    return prices;
}

} // namespace

class SwitchPricesTest final : public QObject {
    Q_OBJECT

private slots:
    void eachSwitchIsPricedTheOtherWay() {
        const auto prices = ui::switchPrices(
            plannable(R"(, "loss_chunks": "16", "checkpoint": "offload", "tiled_mlp": "off")"), 65536, {});
        QVERIFY(prices.has_value());
        QCOMPARE(prices->context, std::int64_t(65536));
        QCOMPARE(prices->switches.size(), std::size_t(4));
        const ui::SwitchPrice& chunks = prices->switches[0];
        QVERIFY(chunks.on && chunks.known);
        QVERIFY(chunks.otherPeak > prices->peak); // all logits at once
        QCOMPARE(chunks.setting, QStringLiteral("16 chunks of 4,096 tokens"));
        QVERIFY(prices->switches[1].on);
        QVERIFY(!prices->switches[2].on);
        QCOMPARE(prices->limits.size(), std::size_t(4));
        QVERIFY(prices->limits[2].chosen && !prices->limits[3].chosen);
        QVERIFY(prices->limits[3].longest > prices->limits[0].longest);
    }

    void whatCannotBePlannedHasNoPrices() {
        QVERIFY(!ui::switchPrices(TrainingScript{}.info(), 100, {}));
        QVERIFY(!ui::switchPrices(test::runInfo(1, "generate", "{}"), 100, {}));
    }

    void rowsSayBytesAndTime() {
        const ui::FlatTreePtr table = ui::switchTable(costly(80 * kGiB), std::nullopt);
        QCOMPARE(table->nodes.size(), std::size_t(1));
        const ui::FlatNode& row = table->nodes.front();
        QCOMPARE(row.cells[0].text, QStringLiteral("Tiled MLP\nin tiles of the sequence"));
        QVERIFY2(row.cells[1].text.startsWith(QStringLiteral("\u22122.00")), qPrintable(row.cells[1].text));
        QVERIFY(row.cells[1].text.endsWith(QLatin1String("without")));
        QVERIFY2(row.cells[2].text.startsWith(QLatin1String("+11")), qPrintable(row.cells[2].text));
        QCOMPARE(row.cells[0].share.value(), 1.0);
        const ui::FlatTreePtr measured = ui::switchTable(
            costly(80 * kGiB), ui::MeasuredPair{QStringLiteral("Offload"), 201, 30 * kGiB, 20 * kGiB, 6, 7});
        QVERIFY(measured->nodes[1].cells[0].text.contains(QLatin1String("measured at step 201")));
        QVERIFY(!measured->nodes[1].cells[0].share);
    }

    void aHintNeedsSpareBytesAndTime() {
        const auto run = ui::TrainingRun::make(TrainingScript{}.info(), *TrainingScript{.steps = 30}.timeline(), 0.9);
        const auto hint = ui::switchHint(costly(80 * kGiB), *run, 400);
        QVERIFY(hint.has_value());
        QCOMPARE(hint->title, QStringLiteral("Tiled MLP does not pay here."));
        QCOMPARE(hint->button, QStringLiteral("Branch from 400 without it"));
        QVERIFY(!ui::switchHint(costly(24 * kGiB), *run, 400)); // 10 % of the budget would not stay spare
        ui::SwitchPrices cheap = costly(80 * kGiB);
        cheap.switches[0].otherSeconds = 9.95;
        QVERIFY(!ui::switchHint(cheap, *run, 400));
    }

    void aResumedRunIsMeasuredAgainstItsBegin() {
        sessions::RunInfo before = TrainingScript{}.info(1, R"(, "tiled_mlp": "off")");
        before.metricsJson = R"({"peak_bytes": 9000, "step_seconds": [0.1, 0.3, 0.2]})";
        const TrainingScript script{.steps = 30, .first = 21};
        const sessions::RunInfo after = test::runInfo(
            2, "finetune", "{}",
            R"({"vitrine": 1, "workload": "finetune", "model": "m/tiny", "data": "rows.jsonl", "output": "out-from-20",)"
            R"( "resume": "out/checkpoint-20", "tiled_mlp": "on"})");
        const auto run = ui::TrainingRun::make(after, *script.timeline(), 0.9);
        const auto pair = ui::measuredPair({before, after}, after, *run, 7000);
        QVERIFY(pair.has_value());
        QCOMPARE(pair->name, QStringLiteral("Tiled MLP"));
        QCOMPARE(pair->step, std::int64_t(21));
        QCOMPARE(pair->before, std::uint64_t(9000));
        QCOMPARE(pair->beforeSeconds, 0.2);
        QVERIFY(!ui::measuredPair({after}, after, *run, 7000)); // its begin is not in the session
        QCOMPARE(ui::switchesText(after.specJson), QStringLiteral("Tiled MLP"));
    }
};

QTEST_GUILESS_MAIN(SwitchPricesTest)
#include "switch_prices_test.moc"
