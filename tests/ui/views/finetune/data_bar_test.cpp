// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The bar at the bottom of the Data page: the nearest change where the run does not fit.
#include "ui/views/finetune/data_bar.h"

#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/common/played_runs.h"
#include "ui/widgets/base/theme.h"

using namespace vitrine;

namespace {

/// 661 MiB as it is, less with layer checkpointing.
const std::string kTooLarge = R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-llama",
    "prompt_length": 8192, "checkpoint": "none", "backend": "meta", "vram_budget": "655MiB"})";

QString priced(bool fits) {
    return QStringLiteral(R"({"peak_bytes": 693000000, "budget_bytes": 686817280, "short_by_bytes": 6182720, )"
                          R"("fits": %1, "peak_at": "loss chunk 0"})")
        .arg(fits ? QStringLiteral("true") : QStringLiteral("false"));
}

struct ShownBar {
    ShownBar() : bar(&runs, [] { return kTooLarge; }, nullptr) {
        bar.resize(1200, 64);
        bar.show();
        bar.refresh();
    }
    test::PlayedRuns runs;
    ui::DataBar bar;
};

} // namespace

class DataBarTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void whatDoesNotFitOffersItsNearestChange() {
        ShownBar shown;
        QTRY_COMPARE(shown.runs.prices.size(), std::size_t(1));
        emit shown.runs.priced(1, priced(false), {});
        QTRY_VERIFY(shown.bar.settled() && shown.bar.tryButton()->isVisible());
        QVERIFY2(shown.bar.spareText().startsWith(QLatin1String("nearest change: ")),
                 qPrintable(shown.bar.spareText()));
        QSignalSpy wanted(&shown.bar, &ui::DataBar::experimentWanted);
        QTest::mouseClick(shown.bar.tryButton(), Qt::LeftButton);
        QCOMPARE(wanted.size(), 1);
        const auto changed = nlohmann::json::parse(wanted.front().front().toString().toStdString());
        QVERIFY(changed != nlohmann::json::parse(kTooLarge));
        QCOMPARE(changed["prompt_length"].get<int>(), 8192); // the data stay
        QVERIFY(!changed.value("plan", false));              // a run, no plan
    }

    void whatFitsOffersNothing() {
        ShownBar shown;
        QTRY_COMPARE(shown.runs.prices.size(), std::size_t(1));
        emit shown.runs.priced(1, priced(true), {});
        QVERIFY(shown.bar.settled());
        QVERIFY(!shown.bar.tryButton()->isVisible());
        QVERIFY(shown.bar.spareText().contains(QLatin1String("spare")));
    }
};

QTEST_MAIN(DataBarTest)
#include "data_bar_test.moc"
