// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Sessions view on a real session file, driven by real events.
#include "ui/views/sessions/sessions_view.h"

#include <QAbstractItemModelTester>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "tests/ui/models/common/patience.h"
#include "ui/models/common/json_rows.h"
#include "ui/views/sessions/run_panel.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/status_row.h"
#include "ui/widgets/base/notice_bar.h"

using namespace vitrine;
using ui::RunTable;

namespace {

sessions::RunInfo makeRun(int number) {
    static const char* const kWorkloads[] = {"generate", "load", "plan generate"};
    sessions::RunInfo run;
    run.id = number;
    run.name = "run " + std::to_string(number);
    run.workload = kWorkloads[number % 3];
    run.specJson = R"({"vitrine": 1, "workload": "generate", "model": "synthetic:gpt-oss-20b", "prompt": "hi"})";
    run.environmentJson = R"({"backend": "meta", "device": {"name": "H200"}})";
    run.metricsJson = R"({"peak_bytes": )" + std::to_string(static_cast<std::uint64_t>(number) * (10ULL << 30)) +
                      R"(, "decode_tokens_per_second": )" + std::to_string(100 + number) + "}";
    run.status = sessions::RunStatus::Done;
    run.startedMs = 1'790'000'000'000 + number * 60'000;
    run.endedMs = run.startedMs + number * 500;
    return run;
}

} // namespace

class SessionsViewTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    std::unique_ptr<ui::MainWindow> window_;
    QString path_;

    ui::SessionsView* view() const { return static_cast<ui::SessionsView*>(window_->view(QStringLiteral("sessions"))); }
    QAbstractItemModel* table() const { return view()->table()->model(); }
    QString cell(int row, int column) const { return table()->index(row, column).data().toString(); }
    void type(const QString& filter) const {
        view()->filterField()->setFocus();
        view()->filterField()->selectAll();
        QTest::keyClicks(view()->filterField(), filter);
    }
    void click(int row, Qt::KeyboardModifiers keys = {}) const {
        const QRect rect = view()->table()->visualRect(table()->index(row, RunTable::Name));
        QTest::mouseClick(view()->table()->viewport(), Qt::LeftButton, keys, rect.center());
    }
    std::string storedName(sessions::RunId id) const {
        return sessions::SessionFile::open(path_.toStdString(), sessions::OpenMode::ReadOnly)->run(id).name;
    }

    void undo() const { window_->actionList()->action(QStringLiteral("edit.undo"))->trigger(); }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        static int count = 0;
        path_ = folder_.filePath(QStringLiteral("s%1.vitrine").arg(++count));
        const auto file = sessions::SessionFile::open(path_.toStdString(), sessions::OpenMode::CreateOrOpen);
        for (int i = 1; i <= 5; ++i) {
            sessions::RunInfo run = makeRun(i);
            const sessions::RunId id = file->createRun(run);
            const bool failed = i == 4;
            file->finishRun(id, failed ? sessions::RunStatus::OutOfMemory : sessions::RunStatus::Done, run.metricsJson,
                            failed ? "weights: out of memory" : "");
        }
        file->setTags(4, {"oom"});
        window_ = std::make_unique<ui::MainWindow>(nullptr, folder_.filePath(QStringLiteral("settings.ini")));
        window_->resize(1440, 900);
        window_->show();
        window_->openFile(path_);
        window_->openView(QStringLiteral("sessions"));
        QTRY_COMPARE(table()->rowCount(), 5);
    }

    void cleanup() { window_.reset(); }

    void showsRuns() {
        const QAbstractItemModelTester tester(table(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QVERIFY(!view()->emptyShown());
        view()->table()->sortByColumn(RunTable::Peak, Qt::DescendingOrder);
        QCOMPARE(cell(0, RunTable::Name), QStringLiteral("#5 run 5"));
        QCOMPARE(cell(0, RunTable::Peak), QStringLiteral("50.00\u00a0GiB"));
        QCOMPARE(cell(1, RunTable::State), QStringLiteral("out of memory"));
        QCOMPARE(cell(1, RunTable::Tags), QStringLiteral("oom"));
        QCOMPARE(cell(4, RunTable::TokensPerSecond), QStringLiteral("101"));
        QCOMPARE(cell(4, RunTable::Model), QStringLiteral("synthetic:gpt-oss-20b"));
    }

    void filters_data() {
        QTest::addColumn<QString>("filter");
        QTest::addColumn<int>("rows");
        QTest::addColumn<bool>("readable");
        QTest::newRow("size") << QStringLiteral("peak>30GiB") << 2 << true;
        QTest::newRow("size or equal") << QStringLiteral("peak>=30GiB") << 3 << true;
        QTest::newRow("tag") << QStringLiteral("tag:oom") << 1 << true;
        QTest::newRow("not tag") << QStringLiteral("-tag:oom") << 4 << true;
        QTest::newRow("both") << QStringLiteral("peak>20GiB workload:load") << 1 << true;
        QTest::newRow("rate") << QStringLiteral("tok/s<103") << 2 << true;
        QTest::newRow("metric") << QStringLiteral("decode_tokens_per_second>=105") << 1 << true;
        QTest::newRow("state") << QStringLiteral("state:memory") << 1 << true;
        QTest::newRow("word") << QStringLiteral("gpt-oss") << 5 << true;
        QTest::newRow("phrase") << QStringLiteral("\"run 3\"") << 1 << true;
        QTest::newRow("nothing") << QStringLiteral("nowhere") << 0 << true;
        QTest::newRow("no number") << QStringLiteral("peak>big") << 5 << false;
    }

    void filters() {
        QFETCH(QString, filter);
        QFETCH(int, rows);
        QFETCH(bool, readable);
        type(filter);
        QCOMPARE(table()->rowCount(), rows);
        QCOMPARE(view()->emptyShown(), rows == 0);
        QCOMPARE(view()->readout().isEmpty(), readable);
        view()->filterField()->clear();
        QCOMPARE(table()->rowCount(), 5);
        QVERIFY(!view()->emptyShown());
    }

    void sortsByHeader() {
        QHeaderView* head = view()->table()->horizontalHeader();
        const QPoint at(head->sectionViewportPosition(RunTable::Time) + 10, 12);
        QTest::mouseClick(head->viewport(), Qt::LeftButton, {}, at);
        const QString first = cell(0, RunTable::Name);
        QTest::mouseClick(head->viewport(), Qt::LeftButton, {}, at);
        QVERIFY(first != cell(0, RunTable::Name));
    }

    void renamesInPlaceAndUndoes() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        click(1);
        const QString before = cell(1, RunTable::Name);
        QTest::keyClick(view()->table(), Qt::Key_F2);
        auto* editor = view()->table()->findChild<QLineEdit*>();
        QVERIFY(editor != nullptr);
        editor->selectAll();
        QTest::keyClicks(editor, QStringLiteral("a better name"));
        QTest::keyClick(editor, Qt::Key_Return);
        QTRY_COMPARE(cell(1, RunTable::Name), QStringLiteral("#2 a better name"));
        QCOMPARE(storedName(2), std::string("a better name"));
        undo();
        QTRY_COMPARE(cell(1, RunTable::Name), before);
        QCOMPARE("#2 " + storedName(2), before.toStdString());
        window_->actionList()->action(QStringLiteral("edit.redo"))->trigger();
        QTRY_COMPARE(cell(1, RunTable::Name), QStringLiteral("#2 a better name"));
    }

    void editsTagsAndNote() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        click(0);
        ui::RunPanel* panel = view()->panel();
        panel->tags()->setFocus();
        QTest::keyClicks(panel->tags(), QStringLiteral("long, slow, long"));
        QTest::keyClick(panel->tags(), Qt::Key_Return);
        QTRY_COMPARE(cell(0, RunTable::Tags), QStringLiteral("long, slow"));
        panel->note()->setFocus();
        QTest::keyClicks(panel->note(), QStringLiteral("first try"));
        QTest::keyClick(panel->note(), Qt::Key_Return, Qt::ControlModifier);
        QTRY_COMPARE(QString::fromStdString(window_->document()->run(1)->note), QStringLiteral("first try"));
        undo();
        QTRY_VERIFY(window_->document()->run(1)->note.empty());
        QTRY_VERIFY(panel->note()->toPlainText().isEmpty());
        undo();
        QTRY_VERIFY(window_->document()->run(1)->tags.empty());
    }

    /// What a read-only file does not take of notes and tags is kept in memory; a name is not.
    void notesOfAReadOnlyFileAreEdited() {
        RunTable runs;
        runs.setRuns({makeRun(1)});
        runs.setRenamable(false);
        QVERIFY(!(runs.flags(runs.index(0, RunTable::Name)) & Qt::ItemIsEditable));
        QVERIFY(runs.flags(runs.index(0, RunTable::Tags)) & Qt::ItemIsEditable);
        ui::RunPanel panel;
        const sessions::RunInfo run = makeRun(1);
        panel.setRun(&run, 1);
        QVERIFY(!panel.note()->isReadOnly() && !panel.tags()->isReadOnly());
        const QSignalSpy edited(&panel, &ui::RunPanel::noteEdited);
        panel.note()->setPlainText(QStringLiteral("typed"));
        panel.setRun(nullptr, 0);
        QCOMPARE(edited.size(), 1);
    }

    void comparesTwo() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        click(3);
        click(1, Qt::ControlModifier);
        QVERIFY(view()->panel()->tree()->isHidden());
        auto* button = view()->findChildren<QPushButton*>().at(0);
        for (QPushButton* one : view()->findChildren<QPushButton*>()) {
            button = one->text() == QStringLiteral("Compare") ? one : button;
        }
        QVERIFY(button->isEnabled());
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(window_->document()->runA(), sessions::RunId(4));
        QCOMPARE(window_->document()->runB(), sessions::RunId(2));
        QCOMPARE(window_->currentView()->id(), QStringLiteral("compare"));
    }

    void opensWithTheKeyboard() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        type(QStringLiteral("run"));
        QTest::keyClick(view()->filterField(), Qt::Key_Down);
        QCOMPARE(QApplication::focusWidget(), view()->table());
        QTest::keyClick(view()->table(), Qt::Key_Home, Qt::ControlModifier);
        QTest::keyClick(view()->table(), Qt::Key_Down);
        QTest::keyClick(view()->table(), Qt::Key_Return);
        QCOMPARE(window_->document()->runA(), sessions::RunId(2));
        QCOMPARE(window_->currentView()->id(), QStringLiteral("memory"));
    }

    void deletesAfterTheQuestion() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        QString question;
        bool answer = false;
        view()->setConfirm([&](const QString& text) {
            question = text;
            return answer;
        });
        click(2);
        QTest::keyClick(view()->table(), Qt::Key_Delete);
        QVERIFY(question.contains(QStringLiteral("run 3")));
        QCOMPARE(table()->rowCount(), 5);
        answer = true;
        QTest::keyClick(view()->table(), Qt::Key_Delete);
        QTRY_COMPARE(table()->rowCount(), 4);
        QCOMPARE(cell(2, RunTable::Name), QStringLiteral("#4 run 4"));
        QCOMPARE(window_->undoBar()->sentence(), QStringLiteral("Run 3 deleted."));
        window_->openView(QStringLiteral("memory")); // the edits of all views are one stack
        QCOMPARE(window_->actionList()->action(QStringLiteral("edit.undo"))->text(), QStringLiteral("Undo delete run"));
        QTest::mouseClick(window_->undoBar()->button(0), Qt::LeftButton);
        QTRY_COMPARE(table()->rowCount(), 5);
        QCOMPARE(storedName(3), std::string("run 3"));
        QVERIFY(!window_->undoBar()->isVisible());
        window_->actionList()->action(QStringLiteral("edit.redo"))->trigger();
        QTRY_COMPARE(table()->rowCount(), 4);
    }

    void aDeletedFileIsSaidAndACopyKeepsWhatWasTyped() {
        view()->table()->sortByColumn(RunTable::When, Qt::AscendingOrder);
        click(0);
        QTRY_COMPARE(window_->statusRow()->saved()->text(), QStringLiteral("Saved"));
        QVERIFY(!window_->keepingBar()->isVisible());
        QVERIFY(QFile::remove(path_));
        QTRY_COMPARE(window_->statusRow()->saved()->text(), QStringLiteral("Not saved: the file was deleted"));
        QVERIFY(window_->keepingBar()->isVisible());
        QVERIFY(window_->keepingBar()->sentence().contains(QFileInfo(path_).fileName()));
        ui::RunPanel* panel = view()->panel();
        panel->note()->setFocus();
        QTest::keyClicks(panel->note(), QStringLiteral("too good to lose"));
        QTest::keyClick(panel->note(), Qt::Key_Return, Qt::ControlModifier);
        QTRY_COMPARE(QString::fromStdString(window_->document()->run(1)->note), QStringLiteral("too good to lose"));
        QCOMPARE(panel->note()->toPlainText(), QStringLiteral("too good to lose"));
        QCOMPARE(window_->statusRow()->saved()->text(), QStringLiteral("Not saved: the file was deleted"));
        const QString copy = folder_.filePath(QStringLiteral("kept.vitrine"));
        window_->document()->saveCopy(copy, false);
        QTRY_COMPARE(window_->document()->path(), copy); // the copy takes its place
        QTRY_COMPARE(window_->statusRow()->saved()->text(), QStringLiteral("Saved"));
        QVERIFY(!window_->keepingBar()->isVisible());
        QCOMPARE(QString::fromStdString(window_->document()->run(1)->note), QStringLiteral("too good to lose"));
    }

    void lostRecordsAreSaid() {
        window_->document()->edit([](sessions::SessionFile& file) { file.setLostRecords(5, 1234); });
        window_->document()->setRunA(5);
        QTRY_COMPARE(window_->statusRow()->losses()->text(), QStringLiteral("1,234 records lost"));
        QVERIFY(window_->statusRow()->losses()->toolTip().contains(QStringLiteral("gap")));
        window_->document()->setRunA(4);
        QTRY_COMPARE(window_->statusRow()->losses()->text(), QStringLiteral("No records lost"));
        QVERIFY(window_->statusRow()->losses()->toolTip().isEmpty());
    }

    void runsAgainWithTheSpec() {
        const QSignalSpy wanted(view(), &ui::View::experimentWanted);
        click(0);
        view()->perform(QStringLiteral("run.again"));
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted.at(0).at(0).toString().contains(QStringLiteral("gpt-oss-20b")));
        QCOMPARE(window_->currentView()->id(), QStringLiteral("run"));
    }

    void exportsFiles() {
        const QSignalSpy done(view(), &ui::SessionsView::exported);
        click(0);
        view()->exportTo(ui::ExportFormat::Csv, folder_.filePath(QStringLiteral("run.csv")));
        QTRY_COMPARE(done.size(), 1);
        const QStringList files = done.at(0).at(0).toStringList();
        QVERIFY(files.size() >= 3);
        for (const QString& file : files) {
            QVERIFY(QFileInfo(file).size() > 0);
        }
        view()->exportTo(ui::ExportFormat::ChromeTrace, path_); // the session itself
        QTRY_VERIFY(view()->findChild<ui::ErrorStrip*>()->sentence().contains(QStringLiteral("is a session")));
        QCOMPARE(storedName(1), std::string("run 1"));
        view()->exportTo(ui::ExportFormat::ChromeTrace, QStringLiteral("/nowhere/at/all.json"));
        QTRY_VERIFY(view()->findChild<ui::ErrorStrip*>()->sentence().contains(QStringLiteral("/nowhere/at/all.json")));
    }

    void keepsColumns() {
        view()->table()->setColumnHidden(RunTable::Backend, false);
        QSettings(folder_.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat)
            .setValue(QStringLiteral("sessions/columns"), QStringList{QStringLiteral("1"), QStringLiteral("9")});
        const ui::MainWindow other(nullptr, folder_.filePath(QStringLiteral("settings.ini")));
        const auto* table = static_cast<ui::SessionsView*>(other.view(QStringLiteral("sessions")))->table();
        QVERIFY(!table->isColumnHidden(RunTable::Backend));
        QVERIFY(table->isColumnHidden(RunTable::Peak));
        QFile::remove(folder_.filePath(QStringLiteral("settings.ini")));
    }

    void emptyStates() {
        window_->document()->show(QStringLiteral("none.vitrine"), {}, {});
        QVERIFY(view()->emptyShown());
        QVERIFY(view()->emptyText().contains(QStringLiteral("no run yet")));
        window_->document()->close();
        QVERIFY(view()->emptyText().contains(QStringLiteral("No session is open")));
        window_->document()->show(QStringLiteral("one.vitrine"), {makeRun(1)}, {});
        QVERIFY(!view()->emptyShown());
        QCOMPARE(table()->rowCount(), 1);
    }

    void manyRuns() {
        std::vector<sessions::RunInfo> runs;
        for (int i = 1; i <= 10000; ++i) {
            runs.push_back(makeRun(i));
        }
        window_->document()->show(QStringLiteral("many.vitrine"), runs, {});
        QCOMPARE(table()->rowCount(), 10000);
        type(QStringLiteral("peak>99980GiB"));
        QCOMPARE(table()->rowCount(), 2);
    }

    void detailRows() {
        const auto rows = ui::jsonRows(
            R"({"peak_bytes": 13775930368, "decode_seconds": 0.5, "ids": [1,2,3], "variants": [{"name": "a"}]})");
        QStringList lines;
        for (const ui::JsonRow& row : rows) {
            lines << row.key + QLatin1Char('=') + row.value;
        }
        QVERIFY(lines.contains(QStringLiteral("peak_bytes=12.83\u00a0GiB")));
        QVERIFY(lines.contains(QStringLiteral("ids=1, 2, 3")));
        QVERIFY(lines.contains(QStringLiteral("variants.0.name=a")));
        QVERIFY(ui::jsonRows("not json").empty());
        // In the inspector what lies inside others is below their name.
        sessions::RunInfo run;
        run.metricsJson = R"({"error": {"holders": [{"bytes": 4}, {"bytes": 5}]}, "peak_bytes": 7})";
        ui::FlatTreeModel model;
        model.setTree(ui::runDetailTree(run));
        const QModelIndex metrics = model.index(0, 0);
        QCOMPARE(model.rowCount(metrics), 2);
        const QModelIndex error = model.index(0, 0, metrics);
        QCOMPARE(error.data().toString(), QStringLiteral("error"));
        QCOMPARE(model.rowCount(model.index(0, 0, error)), 2);
    }

    void pictures() {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            QVERIFY(window_->grab().save(QDir(folder).filePath(QStringLiteral("sessions.png"))));
        }
    }
};

QTEST_MAIN(SessionsViewTest)
#include "sessions_view_test.moc"
