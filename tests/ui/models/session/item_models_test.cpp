// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Every item model of the program, checked by Qt's model tester while runs come, are chosen, filtered, sorted and go.
#include <QAbstractItemModelTester>
#include <QAbstractItemView>
#include <QAbstractProxyModel>
#include <QLineEdit>
#include <QListView>
#include <QSet>
#include <QTest>

#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/session/session_document.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/base/theme.h"

using namespace vitrine;

namespace {

ui::TimelinePtr timelineOf(double scale) {
    test::RecordedRun run;
    const auto load = run.scope(base::ScopeKind::Phase, "load", 0, 1);
    run.alloc(base::MemoryCategory::Weights, "layers.0.experts", 8e6 * scale, 0.1, -1, load);
    run.span("Read", "layers.0.experts", 0.1, 0.6, 8e6);
    const auto decode = run.scope(base::ScopeKind::Phase, "decode", 1, 3);
    for (int i = 0; i < 20; ++i) {
        const auto step = run.scope(base::ScopeKind::Step, "decode", 1 + i * 0.1, 1.1 + i * 0.1, decode, i);
        run.alloc(base::MemoryCategory::Activations, "hidden", 2e6 * scale, 1.01 + i * 0.1, 1.09 + i * 0.1, step);
        run.alloc(base::MemoryCategory::KvCache, "kv", 1e5 * scale, 1.02 + i * 0.1, -1, step);
        run.counter("kv_tokens", 1.05 + i * 0.1, i + 1);
    }
    return run.timeline();
}

sessions::RunInfo infoOf(sessions::RunId id, const char* workload, double peak) {
    const std::string metrics = R"({"peak_bytes": )" + std::to_string(peak) +
                                R"(, "decode_tokens_per_second": 40, "peak_by_category": {"weights": 8000000},
        "variants": [{"weights": "quantized", "seconds": 1, "bytes_read": 8000000}], "list": [{"a": 1}, {"a": 2}]})";
    return test::runInfo(id, workload, metrics, R"({"vitrine": 1, "workload": ")" + std::string(workload) + R"("})");
}

} // namespace

class ItemModelsTest final : public QObject {
    Q_OBJECT

    std::vector<std::unique_ptr<QAbstractItemModelTester>> testers_;
    QSet<const QAbstractItemModel*> tested_;

    /// Models of all views and what lies under them; those that came since the last call too.
    void watch(QWidget* window) {
        for (QAbstractItemView* view : window->findChildren<QAbstractItemView*>()) {
            for (QAbstractItemModel* model = view->model(); model != nullptr;) {
                if (!tested_.contains(model)) {
                    tested_ << model;
                    testers_.push_back(std::make_unique<QAbstractItemModelTester>(
                        model, QAbstractItemModelTester::FailureReportingMode::QtTest));
                }
                const auto* proxy = qobject_cast<QAbstractProxyModel*>(model);
                model = proxy != nullptr ? proxy->sourceModel() : nullptr;
            }
        }
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void modelsOfTheWholeWindow() {
        ui::MainWindow window(nullptr, {});
        window.resize(1440, 900);
        window.show();
        watch(&window);
        const auto eachView = [&] {
            for (ui::View* view : window.views()) {
                window.openView(view->id());
                view->perform(QStringLiteral("view.table"));
                QCoreApplication::processEvents();
                watch(&window);
                view->perform(QStringLiteral("view.table"));
            }
        };
        eachView();
        ui::SessionDocument& document = *window.document();
        const ui::TimelinePtr first = timelineOf(1), second = timelineOf(3);
        document.show(QStringLiteral("x.vitrine"), {infoOf(1, "generate", 1e7)}, {{1, first}});
        eachView();
        document.show(QStringLiteral("x.vitrine"),
                      {infoOf(1, "generate", 1e7), infoOf(2, "load", 3e7), infoOf(3, "generate", 2e7)},
                      {{1, first}, {2, second}, {3, second}});
        document.setRunA(3);
        document.setRunB(1);
        eachView();
        window.timeCursor()->setCursor(test::ns(1.5));
        eachView();
        document.swapRuns();
        for (const QAbstractItemModel* model : tested_) { // sorting keeps them whole
            const_cast<QAbstractItemModel*>(model)->sort(0, Qt::DescendingOrder);
        }
        window.searchField()->setFocus();
        QTest::keyClicks(window.searchField(), QStringLiteral("hid"));
        eachView();
        QTest::keyClick(&window, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        watch(&window);
        auto* palette = window.findChild<ui::CommandPalette*>();
        QVERIFY(palette != nullptr && tested_.contains(palette->list()->model()));
        QTest::keyClicks(palette->field(), QStringLiteral("peak"));
        QTest::keyClick(palette->field(), Qt::Key_Escape);
        document.show(QStringLiteral("x.vitrine"), {infoOf(3, "generate", 2e7)}, {{3, second}});
        eachView();
        document.show(QStringLiteral("x.vitrine"), {}, {});
        eachView();
        QVERIFY2(tested_.size() >= 15, qPrintable(QString::number(tested_.size())));
        testers_.clear();
    }
};

QTEST_MAIN(ItemModelsTest)
#include "item_models_test.moc"
