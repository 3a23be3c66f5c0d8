// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The way of somebody with rows of their own: the file is dropped, Start is clicked, the demo model gets an adapter.
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QMimeData>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "app/gui/host_run_controller.h"
#include "tests/ui/views/run/run_window.h"
#include "ui/views/finetune/data_page.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_view.h"

using namespace vitrine;

namespace {

constexpr int kTrainLimitMs = 60'000;

QPushButton* shownButton(QWidget* in, const QString& text) {
    for (auto* button : in->findChildren<QPushButton*>()) {
        if (button->text() == text && button->isVisible()) {
            return button;
        }
    }
    return nullptr;
}

void drop(QWidget* window, const QString& path) {
    QMimeData mime;
    mime.setUrls({QUrl::fromLocalFile(path)});
    QDragEnterEvent enter(QPoint(300, 300), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent dropped(QPointF(300, 300), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window, &dropped);
}

} // namespace

class GuiTrainTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void aDroppedFileAndStartMakeARun() {
        const QString rows = folder_.filePath(QStringLiteral("mine.jsonl"));
        QFile file(rows);
        QVERIFY(file.open(QIODevice::WriteOnly));
        for (const char* word : {"one", "two"}) {
            const nlohmann::json asked{{"role", "user"}, {"content", std::string("Say ") + word}};
            const nlohmann::json answer{{"role", "assistant"}, {"content", "ka"}};
            file.write(QByteArray::fromStdString(nlohmann::json{{"messages", {asked, answer}}}.dump() + "\n"));
        }
        file.close();
        app::HostRunController runs;
        const auto window = test::openRunWindow(&runs, folder_.path());

        drop(window.get(), rows); // the first action
        auto* view = qobject_cast<ui::FinetuneView*>(window->currentView());
        QVERIFY(view != nullptr);
        QCOMPARE(view->page(), ui::FinetuneView::Data);
        view->setSessionFolder(folder_.path());
        ui::ExperimentForm* form = view->form()->form();
        form->setText(QStringLiteral("pack"), QStringLiteral("false")); // two short rows would be one step
        QCOMPARE(form->text(QStringLiteral("data")), rows);
        QVERIFY(form->text(QStringLiteral("model")).endsWith(QLatin1String("vitrine-demo")));
        QCOMPARE(form->text(QStringLiteral("method")), QStringLiteral("lora"));
        QTRY_VERIFY_WITH_TIMEOUT(view->dataPage()->hasData() && view->settled(), kTrainLimitMs);
        QPushButton* start = shownButton(view, QStringLiteral("Start"));
        QVERIFY(start != nullptr && start->isEnabled());

        QTest::mouseClick(start, Qt::LeftButton); // the second one
        QVERIFY(runs.running());
        QCOMPARE(view->page(), ui::FinetuneView::Live);
        const auto done = [&] {
            const auto& all = window->document()->runs();
            return !runs.running() && all.size() == 1 && all.front().status == sessions::RunStatus::Done;
        };
        QTRY_VERIFY_WITH_TIMEOUT(done(), kTrainLimitMs);
        QTRY_VERIFY_WITH_TIMEOUT(view->training() != nullptr && view->training()->lastStep() == 2, kTrainLimitMs);
    }

    /// What tools/demo trains on, for two steps in place of 130.
    void theRowsOfTheDemoTrain() {
        const QString rows = QStringLiteral(VITRINE_ROOT "/tools/demo-data/");
        app::HostRunController runs;
        const auto window = test::openRunWindow(&runs, folder_.filePath(QStringLiteral("demo")));
        window->openFile(rows + QStringLiteral("vitrish.jsonl"));
        auto* view = qobject_cast<ui::FinetuneView*>(window->currentView());
        QVERIFY(view != nullptr);
        view->setSessionFolder(folder_.filePath(QStringLiteral("demo")));
        ui::ExperimentForm* form = view->form()->form();
        form->setText(QStringLiteral("eval_data"), rows + QStringLiteral("vitrish-new.jsonl"));
        form->setText(QStringLiteral("eval_every"), QStringLiteral("2"));
        form->setText(QStringLiteral("sequence_length"), QStringLiteral("256"));
        form->setText(QStringLiteral("steps"), QStringLiteral("2"));
        QTRY_VERIFY_WITH_TIMEOUT(view->dataPage()->hasData() && view->settled(), kTrainLimitMs);
        QCOMPARE(view->dataPage()->data()->summary.used, 130);
        QCOMPARE(view->dataPage()->data()->summary.cut.size(), std::size_t(0));
        QVERIFY(view->perform(QStringLiteral("run.start")));
        QTRY_VERIFY_WITH_TIMEOUT(!runs.running() && view->training() != nullptr &&
                                     view->training()->evaluations().size() == 1,
                                 kTrainLimitMs);
        QCOMPARE(view->training()->lastStep(), 2);
    }
};

QTEST_MAIN(GuiTrainTest)
#include "train_test.moc"
