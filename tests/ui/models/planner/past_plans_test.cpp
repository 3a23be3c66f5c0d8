// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/past_plans.h"

#include <QTest>

using namespace vitrine;

class PastPlansTest final : public QObject {
    Q_OBJECT

private slots:
    void aRunThatGoesOnIsPlannedForItsOwnDevice() {
        sessions::RunInfo run;
        run.environmentJson = R"({"backend": "cpu", "device": {"name": "CPU"}})";
        QCOMPARE(ui::runDevice(run), QStringLiteral("cpu"));
        run.metricsJson = R"({"backend": "cpu"})";
        run.environmentJson = "{}";
        QCOMPARE(ui::runDevice(run), QStringLiteral("cpu"));
        run.metricsJson = "{}";
        run.environmentJson = R"({"backend": "cuda", "device": {"name": "NVIDIA H100 80GB HBM3"}})";
        QCOMPARE(ui::runDevice(run), QStringLiteral("h100-80gb"));
    }
};

QTEST_MAIN(PastPlansTest)
#include "past_plans_test.moc"
