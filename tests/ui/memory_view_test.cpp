// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Memory view in its window, driven by real events.
#include "ui/views/memory/memory_view.h"

#include <QDir>
#include <QLineEdit>
#include <QTest>
#include <QTreeView>
#include <QWheelEvent>

#include "tests/ui/fake_runs.h"
#include "ui/views/memory/alive_panel.h"
#include "ui/views/memory/oom_page.h"
#include "ui/views/shell/main_window.h"

using namespace vitrine;
using ui::MainWindow;
using ui::MemoryView;

class MemoryViewTest final : public QObject {
    Q_OBJECT

    std::unique_ptr<MainWindow> window_;
    std::shared_ptr<test::FakeTimeline> timeline_;

    MemoryView* view() const { return static_cast<MemoryView*>(window_->view(QStringLiteral("memory"))); }

    void picture(const QString& name) const {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            QVERIFY(window_->grab().save(QDir(folder).filePath(name + QStringLiteral(".png"))));
        }
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        ui::Theme::instance().setMode(ui::Theme::Mode::Dark);
        timeline_ = test::makeOutOfMemoryRun();
        window_ = std::make_unique<MainWindow>(nullptr, QString());
        window_->resize(1440, 900);
        window_->show();
        window_->document()->show(QStringLiteral("long-context.vitrine"),
                                  {test::runInfo(1, "qlora-96k", sessions::RunStatus::OutOfMemory)}, {{1, timeline_}});
        QTRY_VERIFY(view()->settled());
    }

    void cleanup() { window_.reset(); }

    void pictures() {
        for (const bool dark : {true, false}) {
            ui::Theme::instance().setMode(dark ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
            const QString suffix = dark ? QStringLiteral("-dark") : QStringLiteral("-light");
            window_->timeCursor()->setRange({test::seconds(2.42), test::seconds(11.08)});
            window_->timeCursor()->setMeasured(ui::TimeRange{test::seconds(7.99), test::seconds(10.78)});
            window_->timeCursor()->setCursor(test::seconds(10.93));
            QTest::qWait(50);
            QTRY_VERIFY(view()->settled());
            QTest::qWait(50);
            picture(QStringLiteral("memory") + suffix);
            view()->perform(QStringLiteral("go.oom"));
            QTest::qWait(50);
            picture(QStringLiteral("why-oom") + suffix);
            view()->perform(QStringLiteral("select.clear"));
        }
    }
};

QTEST_MAIN(MemoryViewTest)
#include "memory_view_test.moc"
