// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The decode roofline: the plot, and where it stands in the Run view's panel.
#include <QTest>

#include "ui/models/common/format.h"
#include "ui/models/common/result_values.h"
#include "ui/views/run/live_panel.h"
#include "ui/widgets/plots/roofline_plot.h"

using namespace vitrine::ui;

namespace {

const std::string kMetrics = R"({"roofline": {"bandwidth": 4.0e12, "bandwidth_source": "copy on the device",
    "parts": {"experts": 1.2e9, "attention": 1.2e9, "head": 1.0e9, "kv_cache": 0.6e9},
    "seconds_per_token": 1.25e-3, "sequences": 1, "context_tokens": 1032}})";

} // namespace

class RooflineTest final : public QObject {
    Q_OBJECT

private slots:
    void comparesWithUnits() {
        QCOMPARE(metricText("roofline.bandwidth", 4.2e12), rateText(4.2e12));
        QCOMPARE(metricText("roofline.parts.head", 1048576.0), QStringLiteral("1.0\u00A0MiB"));
    }

    void plotsFloorsToTheScaleOfTheMeasuredTime() {
        RooflinePlot plot(nullptr);
        plot.setFacts(*vitrine::profiler::rooflineSummary(kMetrics));
        const double width = 340;
        double sum = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            sum += plot.pieceRect(i, width).width();
        }
        // The measured time has the whole room; the floor is 0.8 of it, and the experts 0.3 of that.
        const double whole = sum / 0.8;
        QVERIFY(std::abs(plot.pieceRect(0, width).width() - 0.24 * whole) < 2);
        QVERIFY(plot.pieceRect(3, width).right() < width - 60);
        const QImage image = plot.picture({width, 150}, 2);
        QCOMPARE(image.size(), QSize(680, 300));
        QVERIFY(plot.spoken().contains(QStringLiteral("1.25")));
    }

    void panelShowsItOnlyWhereThereIsOne() {
        LivePanel panel;
        panel.resize(348, 800);
        panel.show();
        panel.setRoofline(vitrine::profiler::rooflineSummary(kMetrics));
        QVERIFY(panel.roofline()->isVisible());
        QVERIFY(panel.rooflineText().startsWith(QStringLiteral("0.80")));
        panel.setRoofline({});
        QVERIFY(!panel.roofline()->isVisible());
        QVERIFY(panel.rooflineText().isEmpty());
    }
};

QTEST_MAIN(RooflineTest)
#include "roofline_test.moc"
