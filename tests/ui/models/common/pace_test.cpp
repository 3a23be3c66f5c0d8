// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/pace.h"

#include <QTest>

#include "tests/ui/models/common/patience.h"

using namespace vitrine;

class PaceTest final : public QObject {
    Q_OBJECT

private slots:
    void whatComesTooSoonIsDoneOnce() {
        int done = 0;
        ui::Pace* own = nullptr;
        const auto ask = [&] { done += own->tooSoon() ? 0 : 1; };
        ui::Pace pace(std::chrono::milliseconds(50), ask, this);
        own = &pace;
        for (int i = 0; i < 1000; ++i) {
            ask();
        }
        QVERIFY(done < 1000);
        const int first = done;
        QVERIFY(first > 1 || pace.waiting());
        QTRY_VERIFY(!pace.waiting());
        QVERIFY(done <= first + 1);
    }
};

QTEST_GUILESS_MAIN(PaceTest)
#include "pace_test.moc"
