// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// When a run of the lab scored a token.
#include "ui/models/precision/token_place.h"

#include <QTest>

#include "tests/profiler/analysis/scripted_run.h"

using namespace vitrine;

class TokenPlaceTest final : public QObject {
    Q_OBJECT

private slots:
    void aTokenIsInTheStepOfTheOneBeforeIt() {
        profiler::testing::ScriptedRun run;
        const auto pass = [&](int format, base::TimeNs begin) {
            run.time = begin;
            run.begin(base::ScopeKind::Phase, "score", format);
            for (const int tokens : {4, 3}) {
                run.begin(base::ScopeKind::Step, "prefill", -1, tokens);
                run.time += 10;
                run.end();
            }
            run.end();
        };
        pass(0, 100);
        pass(2, 200);
        const auto timeline = run.timeline();
        const auto when = [&](std::size_t format, std::size_t token) {
            return ui::whenScored(*timeline, format, token);
        };
        QVERIFY((when(0, 1) == ui::TimeRange{100, 110}));
        QVERIFY((when(0, 4) == ui::TimeRange{100, 110}));
        QVERIFY((when(0, 5) == ui::TimeRange{110, 120}));
        QVERIFY((when(2, 7) == ui::TimeRange{210, 220}));
        QVERIFY(!when(2, 8)); // behind the last
        QVERIFY(!when(0, 0)); // nothing is before it
        QVERIFY(!when(1, 1)); // this format was not scored
    }
};

QTEST_MAIN(TokenPlaceTest)
#include "token_place_test.moc"
