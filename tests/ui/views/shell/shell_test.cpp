// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The main window: commands, palette, shortcuts, themes, settings, files, narrow windows, long words.
#include <QAbstractItemModelTester>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QLineEdit>
#include <QListView>
#include <QMimeData>
#include <QPushButton>
#include <QSet>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/fake_runs.h"
#include "tests/ui/models/common/patience.h"
#include "ui/models/run/run_command.h"
#include "ui/views/run/run_view.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/view_list.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/notice_bar.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

using namespace vitrine;
using namespace vitrine::ui;

namespace {

/// Runs that only begin.
class BeginningRuns final : public RunController {
public:
    void start(const std::string&, const QString&) override {
        running_ = true;
        emit started(1);
    }
    void stop() override {}
    bool running() const override { return running_; }
    quint64 price(const std::string&) override { return 0; }
    void releaseMemory() override { kept_ = 0; }
    quint64 keptBytes() const override { return kept_; }

    void end() {
        running_ = false;
        kept_ = 1 << 20;
        emit ended(QStringLiteral("done"), {}, {});
    }

private:
    bool running_ = false;
    quint64 kept_ = 0;
};

sessions::RunInfo doneRun() {
    sessions::RunInfo run;
    run.id = 1;
    run.name = run.workload = "generate";
    run.specJson = R"({"vitrine": 1, "workload": "generate"})";
    run.status = sessions::RunStatus::Done;
    return run;
}

} // namespace

class ShellTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    std::unique_ptr<MainWindow> window_;

    void make(const QString& settings = {}) {
        window_ = std::make_unique<MainWindow>(nullptr, settings);
        window_->show();
        QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    }

private slots:
    void initTestCase() { Theme::instance().install(); }
    void init() { make(); }
    void cleanup() {
        window_.reset();
        Theme::instance().setMode(Theme::Mode::System);
    }

    void everyViewIsInTheRailAndSaysSomething() {
        QCOMPARE(window_->views().size(), viewEntries().size());
        for (const ViewEntry& entry : viewEntries()) {
            const QString id = QString::fromLatin1(entry.id);
            window_->actionList()->action(QStringLiteral("go.") + id)->trigger();
            QCOMPARE(window_->currentView()->id(), id);
            QVERIFY(!window_->currentView()->picture({800, 500}, 2.0).isNull());
        }
        QTest::keyClick(window_.get(), Qt::Key_Left, Qt::AltModifier);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("compare"));
        QTest::keyClick(window_.get(), Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("sessions"));
        QTest::keyClick(window_.get(), Qt::Key_2, Qt::ControlModifier);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("memory"));
    }

    void noKeyIsTwoCommands() {
        QSet<QString> keys;
        for (const QAction* action : window_->actionList()->all()) {
            QVERIFY2(!action->text().isEmpty(), qPrintable(action->objectName()));
            for (const QKeySequence& key : action->shortcuts()) {
                const QString text = key.toString();
                QVERIFY2(!keys.contains(text), qPrintable(text));
                keys << text;
            }
        }
    }

    void paletteFindsAndRuns() {
        QTest::keyClick(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        auto* palette = window_->findChild<CommandPalette*>();
        QVERIFY(palette->isVisible());
        QTest::keyClicks(palette->field(), QStringLiteral("sess view"));
        QCOMPARE(palette->list()->currentIndex().data().toString(), QStringLiteral("Sessions view"));
        QTest::keyClick(palette->field(), Qt::Key_Return);
        QVERIFY(!palette->isVisible());
        QCOMPARE(window_->currentView()->id(), QStringLiteral("sessions"));
        QVERIFY(fuzzyScore(QStringLiteral("gp"), QStringLiteral("Go to next peak")) >
                fuzzyScore(QStringLiteral("gp"), QStringLiteral("sagging pup")) - 20);
        QCOMPARE(fuzzyScore(QStringLiteral("zq"), QStringLiteral("Zoom in")), -1);
        ActionModel model(*window_->actionList());
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    }

    void commandsThatCannotRunSayWhy() {
        QAction* stop = window_->actionList()->action(QStringLiteral("run.stop"));
        QVERIFY(!stop->isEnabled());
        QVERIFY(!ActionList::reasonOf(stop).isEmpty());
    }

    void shortcutsPageRebinds() {
        QTest::keyClick(window_.get(), Qt::Key_Question, Qt::ShiftModifier);
        auto* page = window_->findChild<ShortcutsPanel*>();
        window_->actionList()->action(QStringLiteral("help.shortcuts"))->trigger();
        QVERIFY(page->isVisible());
        ActionList* actions = window_->actionList();
        QAction* loser = actions->rebind(actions->action(QStringLiteral("panel.drawer")), QKeySequence(Qt::Key_P));
        QCOMPARE(loser, actions->action(QStringLiteral("go.peak-next")));
        QVERIFY(loser->shortcuts().isEmpty());
        actions->resetKeys();
        QCOMPARE(ActionList::keyText(loser), QStringLiteral("P"));
    }

    void themesSwitchWithoutRestart() {
        window_->actionList()->action(QStringLiteral("theme.dark"))->trigger();
        QVERIFY(themeTokens().dark);
        const QColor dark = window_->grab().toImage().pixelColor(700, 15);
        QCOMPARE(dark, themeTokens().window);
        window_->actionList()->action(QStringLiteral("theme.light"))->trigger();
        QVERIFY(!themeTokens().dark);
        QCOMPARE(window_->grab().toImage().pixelColor(700, 15), themeTokens().window);
    }

    void settingsAreKept() {
        const QString file = folder_.filePath(QStringLiteral("v.ini"));
        make(file);
        window_->resize(1300, 800);
        window_->actionList()->action(QStringLiteral("theme.dark"))->trigger();
        window_->close();
        make(file);
        QCOMPARE(window_->size(), QSize(1300, 800));
        QCOMPARE(Theme::instance().mode(), Theme::Mode::Dark);
        QFile(file).remove();
        QFile broken(file);
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("[General]\ngeometry=@Invalid()\ntheme=99\nrecent=7\n[layout]\nmemory=nonsense\n");
        broken.close();
        make(file); // damaged settings are ignored
        QVERIFY(window_->isVisible());
    }

    void badFilesAreAStripNotACrash() {
        const QString path = folder_.filePath(QStringLiteral("bad.vitrine"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("nonsense");
        file.close();
        window_->openFile(path);
        QTRY_VERIFY(!window_->currentView()->findChild<ErrorStrip*>()->sentence().isEmpty());
        window_->openFile(folder_.filePath(QStringLiteral("missing.vitrine")));
        QVERIFY(window_->currentView()->findChild<ErrorStrip*>()->sentence().contains(QStringLiteral("no such file")));
    }

    void dropOpens() {
        QMimeData mime;
        mime.setUrls({QUrl::fromLocalFile(folder_.path())});
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(window_.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(window_.get(), &drop);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("run")); // a folder is a model
    }

    void aGgufFileIsAModel() {
        const QString path = folder_.filePath(QStringLiteral("tiny-model")); // its first bytes say what it is
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("GGUF\3\0\0\0", 8) == 8);
        file.close();
        window_->openFile(path);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("run"));
        auto* run = dynamic_cast<RunView*>(window_->currentView());
        QVERIFY(run != nullptr);
        QCOMPARE(run->form()->text(QStringLiteral("model")), path);
    }

    void aForeignFileLeavesTheSessionOpen() {
        const QString session = folder_.filePath(QStringLiteral("kept.vitrine"));
        {
            const auto made = sessions::SessionFile::open(session.toStdString(), sessions::OpenMode::CreateOrOpen);
            sessions::RunInfo run = test::runInfo(1, "x", sessions::RunStatus::Done);
            run.specJson = R"({"vitrine":1,"workload":"generate","model":"/no/such/model"})";
            made->finishRun(made->createRun(run), sessions::RunStatus::Done, "{}", "");
        }
        window_->openFile(session);
        QTRY_COMPARE(window_->document()->runs().size(), std::size_t(1));
        // Its model is somewhere else now, and one is asked once.
        QVERIFY(window_->modelBar()->isVisible());
        QVERIFY(window_->modelBar()->sentence().startsWith(QStringLiteral("The model /no/such/model of run 1")));
        const QString foreign = folder_.filePath(QStringLiteral("picture.png"));
        QFile file(foreign);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("nonsense") == 8);
        file.close();
        window_->openFile(foreign);
        QTRY_VERIFY(!window_->currentView()->findChild<ErrorStrip*>()->sentence().isEmpty());
        QVERIFY(window_->document()->isOpen());
        QCOMPARE(window_->document()->path(), session);
        QCOMPARE(window_->document()->runs().size(), std::size_t(1));
        window_->document()->placeModel(QStringLiteral("/no/such/model"), folder_.path());
        QTRY_VERIFY(!window_->modelBar()->isVisible());
    }

    void rowsOpenTheirPage() {
        const QString rows = folder_.filePath(QStringLiteral("rows.jsonl"));
        QFile file(rows);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{\"text\": \"a\"}\n") > 0);
        file.close();
        window_->openFile(rows);
        QCOMPARE(window_->currentView()->id(), QStringLiteral("fine-tune"));
        window_->openFile(folder_.filePath(QStringLiteral("none.jsonl")));
        QVERIFY(window_->currentView()->findChild<ErrorStrip*>()->sentence().contains(QStringLiteral("no such file")));
    }

    void commandLineOfARun() {
        sessions::RunInfo run = test::runInfo(1, "x", sessions::RunStatus::Done);
        run.specJson =
            R"({"vitrine":1,"workload":"generate","model":"a b","max_new_tokens":8,"raw":true,"plan":false,"stop":["x"]})";
        QCOMPARE(runCommandLine(run),
                 QStringLiteral("vitrine generate --max-new-tokens 8 --model 'a b' --raw --stop x"));
        run.specJson = "[]";
        QVERIFY(runCommandLine(run).isEmpty());
    }

    void runAgainLeavesSingleKeysToTheView() {
        BeginningRuns runs;
        MainWindow window(&runs, {});
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        window.document()->show(QStringLiteral("x.vitrine"), {doneRun()}, {});
        auto* again = window.findChild<QPushButton*>(QStringLiteral("runAgain"));
        again->setFocus();
        QTest::mouseClick(again, Qt::LeftButton);
        QTRY_VERIFY(!again->isEnabled());
        QVERIFY(window.focusWidget() == window.currentView() ||
                window.currentView()->isAncestorOf(window.focusWidget()));
        QVERIFY(!window.searchField()->hasFocus());
    }

    void deviceMemoryIsReleasedWhileSomethingIsKept() {
        BeginningRuns runs;
        MainWindow window(&runs, {});
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        QAction* release = window.actionList()->action(QStringLiteral("run.release"));
        QVERIFY(!release->isEnabled());
        runs.end();
        QVERIFY(release->isEnabled());
        release->trigger();
        QCOMPARE(runs.keptBytes(), quint64{0});
        QVERIFY(!release->isEnabled());
        emit runs.notice(QStringLiteral("A new worker process was started"));
        QCOMPARE(window.statusBar()->currentMessage(), QStringLiteral("A new worker process was started"));
    }

    void undoSaysWhyItCannotBeDone() {
        window_->openView(QStringLiteral("memory"));
        for (const char* id : {"edit.undo", "edit.redo"}) {
            const QAction* action = window_->actionList()->action(QString::fromLatin1(id));
            QVERIFY(!action->isEnabled());
            QVERIFY(action->toolTip().startsWith(QStringLiteral("Nothing was")));
        }
    }

    void inspectorFoldsToItsHeadInLowWindows() {
        auto* dock = window_->findChild<QDockWidget*>(QStringLiteral("inspector"));
        window_->resize(1440, 900);
        QTRY_VERIFY(dock->isVisible() && dock->height() > 400);
        window_->resize(1024, 700);
        QTRY_VERIFY(dock->isVisible() && dock->height() == 28);
        QVERIFY2(dock->width() > 900, qPrintable(QString::number(dock->width())));
        window_->actionList()->action(QStringLiteral("panel.inspector"))->trigger();
        QTRY_VERIFY2(dock->height() > 150, qPrintable(QString::number(dock->height())));
        window_->actionList()->action(QStringLiteral("panel.inspector"))->trigger();
        QTRY_VERIFY(!dock->isVisible());
        window_->resize(1440, 900);
        QTRY_VERIFY(dock->isVisible() && dock->height() > 400);
    }

    /// The wide inspector of one view does not make those of the others wider.
    void inspectorsHaveTheWidthOfTheirView() {
        auto* dock = window_->findChild<QDockWidget*>(QStringLiteral("inspector"));
        window_->resize(1440, 900);
        for (const char* id : {"planner", "memory", "planner", "kernels", "planner"}) {
            window_->openView(QString::fromLatin1(id));
            const View* view = window_->currentView();
            QTRY_COMPARE(dock->width(), view->inspectorWidth());
        }
        // Fine-tune comes with its form, which has no inspector.
        window_->openView(QStringLiteral("memory"));
        QTRY_COMPARE(dock->width(), 376);
        window_->openView(QStringLiteral("fine-tune"));
        QTRY_VERIFY(!dock->isVisible());
        window_->currentView()->showPage(QStringLiteral("step"));
        QTRY_VERIFY(dock->isVisible() && dock->width() == 348);
    }

    /// An inspector below the view takes no more than its share, whichever view has the tallest one.
    void lowInspectorsLeaveRoomForTheView() {
        auto* dock = window_->findChild<QDockWidget*>(QStringLiteral("inspector"));
        for (const char* id : {"compare", "kv-cache", "memory"}) {
            window_->openView(QString::fromLatin1(id));
            window_->resize(1024, 768);
            QTRY_VERIFY2(!dock->isVisible() || dock->height() <= 260,
                         qPrintable(QStringLiteral("%1: %2").arg(QString::fromLatin1(id)).arg(dock->height())));
            window_->resize(1440, 900);
            QTRY_VERIFY(!dock->isVisible() || dock->height() > 400);
        }
    }

    /// Segments keep their words and the room beside them; what matters less gives way.
    void headersDoNotSqueezeSegments() {
        const auto squeezed = [](const View& view) {
            for (const SegmentedControl* segments : view.header()->findChildren<SegmentedControl*>()) {
                for (int i = 0; i < segments->count() && segments->isVisible(); ++i) {
                    const QAbstractButton* button = segments->button(i);
                    const double words = textWidth(button->text(), Theme::instance().font(TypeRole::Table));
                    if (button->width() < words + 20) {
                        return QStringLiteral("%1: %2 has %3").arg(view.id(), button->text()).arg(button->width());
                    }
                }
            }
            return QString();
        };
        for (const QSize size : {QSize(1440, 900), QSize(1200, 800), QSize(1024, 700), QSize(900, 600)}) {
            window_->resize(size);
            QTRY_COMPARE(window_->size(), size);
            for (View* view : window_->views()) {
                window_->openView(view->id());
                QTRY_COMPARE(squeezed(*view), QString()); // the layout follows
            }
        }
    }

    void wordsFitNarrowAndLong() {
        // Words 30 % longer than these: every button that is shown keeps its words whole.
        for (const QSize size : {QSize(1440, 900), QSize(1024, 700), QSize(900, 600)}) {
            window_->resize(size);
            QTest::qWait(10);
            QCOMPARE(window_->size(), size);
            for (View* view : window_->views()) {
                window_->openView(view->id());
                // Nothing is clipped beside the rail, and from 1024 on there is room for longer words.
                const double longer = size.width() >= 1024 ? 1.1 : 1.0;
                const double wanted = view->header()->minimumSizeHint().width() * longer;
                QVERIFY2(wanted <= view->width(), qPrintable(QStringLiteral("%1 at %2: %3 of %4")
                                                                 .arg(view->id())
                                                                 .arg(size.width())
                                                                 .arg(wanted)
                                                                 .arg(view->width())));
            }
        }
        for (QPushButton* button : window_->findChildren<QPushButton*>()) {
            const QString words = button->text();
            if (words.isEmpty()) {
                continue;
            }
            button->setText(words + QString(words.size() / 3 + 1, QLatin1Char('w')));
            QVERIFY(button->sizeHint().width() >= button->fontMetrics().horizontalAdvance(button->text()));
            button->setText(words);
        }
    }
};

QTEST_MAIN(ShellTest)
#include "shell_test.moc"
