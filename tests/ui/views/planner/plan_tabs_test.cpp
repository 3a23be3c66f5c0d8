// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/plan_tabs.h"

#include <QTest>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/theme.h"

using namespace vitrine;

class PlanTabsTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void onePartAtATimeBelowThePage() {
        QWidget panel;
        auto *verdict = new QWidget(&panel), *plan = new QWidget(&panel);
        ui::DockHeader header(QStringLiteral("Verdict"));
        const auto* tabs =
            new ui::PlanTabs({{QStringLiteral("Verdict"), verdict}, {QStringLiteral("Plan"), plan}}, &panel, &header);
        panel.resize(348, 700);
        panel.show();
        QVERIFY(verdict->isVisible() && plan->isVisible());
        QVERIFY(tabs->segments()->isHidden());
        panel.resize(976, 220);
        QTRY_VERIFY(!tabs->segments()->isHidden());
        QVERIFY(verdict->isVisible() && !plan->isVisible());
        QTest::mouseClick(tabs->segments()->button(1), Qt::LeftButton);
        QVERIFY(!verdict->isVisible() && plan->isVisible());
        panel.resize(348, 700);
        QTRY_VERIFY(verdict->isVisible() && plan->isVisible());
    }
};

QTEST_MAIN(PlanTabsTest)
#include "plan_tabs_test.moc"
