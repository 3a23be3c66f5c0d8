// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/sessions/sessions_view.h"

#include <QApplication>
#include <QClipboard>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <algorithm>

#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/views/sessions/run_panel.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

SessionsView::SessionsView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("sessions"), tr("Sessions"), context, parent), model_(new RunTable(this)),
      proxy_(new RunTableProxy(this)), panel_(new RunPanel(this)),
      edits_(context.edits != nullptr ? context.edits : new SessionEdits(context.document, this)), exportJob_(this) {
    proxy_->setSourceModel(model_);
    buildHeader();
    buildTable();
    confirm_ = [this](const QString& question) {
        return QMessageBox::question(this, tr("Delete runs"), question, QMessageBox::Cancel | QMessageBox::Discard,
                                     QMessageBox::Cancel) == QMessageBox::Discard;
    };
    connect(model_, &RunTable::renameWanted, edits_, &SessionEdits::rename);
    connect(model_, &RunTable::tagsWanted, edits_, &SessionEdits::setTags);
    connect(panel_, &RunPanel::tagsEdited, edits_, &SessionEdits::setTags);
    connect(panel_, &RunPanel::noteEdited, edits_, &SessionEdits::setNote);
    followDocument();
}

void SessionsView::buildHeader() {
    filter_ = new QLineEdit(this);
    filter_->setAccessibleName(tr("Filter runs"));
    filter_->setPlaceholderText(tr("Filter: peak>40GiB tag:oom text"));
    filter_->setClearButtonEnabled(true);
    filter_->setMinimumWidth(244);
    filter_->setMaximumWidth(300);
    filter_->setToolTip(tr("Words, and conditions as peak>40GiB, tok/s>100, time<2s, tag:oom, state:failed, "
                           "workload:generate, model:20b; - before a term turns it around"));
    setControlHeight(filter_, 24);
    header()->addControl(filter_);
    connect(filter_, &QLineEdit::textChanged, this, &SessionsView::onFilter);
    filter_->installEventFilter(this);
    import_ = new QPushButton(tr("Import"), this);
    export_ = new QPushButton(tr("Export"), this);
    compare_ = new QPushButton(tr("Compare"), this);
    auto* menu = new QMenu(export_);
    connect(menu->addAction(tr("Tables as CSV…")), &QAction::triggered, this, [this] { exportRun(ExportFormat::Csv); });
    connect(menu->addAction(tr("Chrome trace for Perfetto…")), &QAction::triggered, this,
            [this] { exportRun(ExportFormat::ChromeTrace); });
    connect(export_, &QPushButton::clicked, this,
            [this, menu] { menu->popup(export_->mapToGlobal(QPoint(0, export_->height()))); });
    connect(import_, &QPushButton::clicked, this, &SessionsView::importRuns);
    connect(compare_, &QPushButton::clicked, this, &SessionsView::compare);
    for (QPushButton* button : {import_, export_, compare_}) {
        setControlHeight(button, 24);
        header()->addRightControl(button);
    }
    import_->setToolTip(tr("Copy the runs of another session file into this one"));
}

QWidget* SessionsView::inspector() {
    return panel_;
}

QWidget* SessionsView::inspectorHeader() {
    return panel_->header();
}

QList<QWidget*> SessionsView::focusStops() const {
    return {filter_, table_};
}

void SessionsView::activated() {
    DocumentView::activated();
    table_->setFocus();
}

std::vector<sessions::RunId> SessionsView::shownRuns() const {
    return waiting_ ? std::vector{waiting_->run} : std::vector<sessions::RunId>();
}

void SessionsView::onSelection() {
    if (chosen().size() <= 1) {
        choose(runA());
    }
}

void SessionsView::onEvents(sessions::RunId) {
    startExport();
}

void SessionsView::refresh() {
    const bool none = model_->rowCount() == 0;
    model_->setRenamable(!context().document->readOnly());
    model_->setRuns(context().document->runs());
    import_->setEnabled(context().document->isOpen() && !context().document->readOnly());
    if (none && chosen().empty()) {
        choose(context().document->runA());
    }
    onChosen();
    updateEmpty();
}

void SessionsView::onFilter() {
    proxy_->setFilter(filter_->text());
    setAlarming(filter_, !proxy_->filterError().isEmpty());
    filter_->update();
    setReadout(proxy_->filterError());
    if (chosen().empty() && proxy_->rowCount() > 0) {
        table_->selectRow(0);
    }
    onChosen();
    updateEmpty();
}

void SessionsView::updateEmpty() {
    const int all = model_->rowCount();
    if (!context().document->isOpen()) {
        showEmpty(tr("No session is open. Open a .vitrine file, drop one here, or start a run."), tr("Open…"),
                  [this] { context().actions->action(QStringLiteral("file.open"))->trigger(); });
    } else if (all == 0) {
        showEmpty(tr("This session holds no run yet."), tr("Start a run"),
                  [this] { emit openView(QStringLiteral("run")); });
    } else if (proxy_->rowCount() == 0) {
        showEmpty(tr("0 of %1 runs match.").arg(countText(all)), tr("Clear filter"), [this] { filter_->clear(); });
    } else {
        showEmpty({});
    }
    const int shown = proxy_->rowCount();
    header()->setFacts(all == 0       ? QString()
                       : shown == all ? (all == 1 ? tr("1 run") : tr("%1 runs").arg(countText(all)))
                                      : tr("%1 of %2 runs").arg(countText(shown), countText(all)));
}

void SessionsView::onChosen() {
    const std::vector<sessions::RunId> runs = chosen();
    compare_->setEnabled(runs.size() >= 2);
    compare_->setToolTip(runs.size() >= 2 ? tr("Compare the chosen runs") : tr("Choose two runs, with Ctrl or Shift"));
    export_->setEnabled(runs.size() == 1);
    export_->setToolTip(runs.size() == 1 ? tr("Write the run for other programs") : tr("Choose one run"));
    const sessions::RunInfo* run = runs.size() == 1 ? context().document->run(runs.front()) : nullptr;
    panel_->setRun(run, static_cast<int>(runs.size()));
}

std::vector<sessions::RunId> SessionsView::chosen() const {
    std::vector<std::pair<int, sessions::RunId>> rows;
    for (const QModelIndex& index : table_->selectionModel()->selectedRows()) {
        rows.emplace_back(index.row(), index.data(RunTable::RunRole).toLongLong());
    }
    std::sort(rows.begin(), rows.end());
    std::vector<sessions::RunId> runs;
    for (const auto& [row, run] : rows) {
        runs.push_back(run);
    }
    return runs;
}

sessions::RunId SessionsView::currentRun() const {
    const QModelIndex now = table_->currentIndex();
    return now.isValid() ? now.data(RunTable::RunRole).toLongLong() : 0;
}

void SessionsView::choose(sessions::RunId run) {
    const int row = model_->rowOf(run);
    const QModelIndex index = row < 0 ? QModelIndex() : proxy_->mapFromSource(model_->index(row, RunTable::Name));
    if (index.isValid()) {
        table_->selectionModel()->setCurrentIndex(index,
                                                  QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        table_->scrollTo(index);
    }
}

void SessionsView::openRun() {
    if (const sessions::RunId run = currentRun(); run != 0) {
        context().document->setRunA(run);
        emit openView(QStringLiteral("memory"));
    }
}

void SessionsView::compare() {
    std::vector<sessions::RunId> runs = chosen();
    if (runs.size() < 2) {
        return;
    }
    // The older of the two is what the newer one is measured against.
    std::sort(runs.begin(), runs.end());
    context().document->setRunB(runs[0]);
    context().document->setRunA(runs[1]);
    emit openView(QStringLiteral("compare"));
}

void SessionsView::runAgain() {
    if (const sessions::RunInfo* run = context().document->run(currentRun())) {
        emit experimentWanted(QString::fromStdString(run->specJson));
    }
}

void SessionsView::deleteRuns() {
    const std::vector<sessions::RunId> runs = chosen();
    if (runs.empty() || context().document->readOnly()) {
        return;
    }
    for (const sessions::RunId id : runs) {
        const sessions::RunInfo* run = context().document->run(id);
        if (run != nullptr && run->status == sessions::RunStatus::Running) {
            showError(tr("Run %1 is in progress; stop it before you delete it.").arg(id));
            return;
        }
    }
    const sessions::RunInfo* first = context().document->run(runs.front());
    const QString what = runs.size() == 1 && first != nullptr
                             ? tr("Delete \"%1\" with its events?").arg(QString::fromStdString(first->name))
                             : tr("Delete %1 runs with their events?").arg(runs.size());
    if (!confirm_(what + QLatin1Char('\n') + tr("Undo brings them back until the session is closed."))) {
        return;
    }
    edits_->deleteRuns(runs);
}

bool SessionsView::perform(const QString& action) {
    if (action == QLatin1String("edit.rename")) {
        const QModelIndex now = table_->currentIndex();
        if (now.isValid() && !context().document->readOnly()) {
            table_->setFocus();
            table_->edit(proxy_->index(now.row(), RunTable::Name));
        }
        return true;
    }
    if (action == QLatin1String("edit.copy")) {
        QStringList lines;
        for (const sessions::RunId id : chosen()) {
            const int row = model_->rowOf(id);
            QStringList cells;
            for (int column = 0; column < RunTable::ColumnCount; ++column) {
                if (!table_->isColumnHidden(column)) {
                    cells << model_->index(row, column).data().toString();
                }
            }
            lines << cells.join(QLatin1Char('\t'));
        }
        QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
        return true;
    }
    if (action == QLatin1String("compare.baseline")) {
        if (currentRun() != 0) {
            context().document->setRunB(currentRun());
        }
        return true;
    }
    if (action == QLatin1String("run.again")) {
        runAgain();
        return true;
    }
    if (action == QLatin1String("select.clear") && !filter_->text().isEmpty()) {
        filter_->clear();
        return true;
    }
    return DocumentView::perform(action);
}

QString SessionsView::find(const QString& text, int) {
    if (filter_->text() != text) {
        filter_->setText(text);
    }
    return text.isEmpty() ? QString()
                          : tr("%1 of %2").arg(countText(proxy_->rowCount()), countText(model_->rowCount()));
}

bool SessionsView::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress && watched == table_) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            openRun();
            return true;
        }
        if (key->key() == Qt::Key_Delete) {
            deleteRuns();
            return true;
        }
        if (key->matches(QKeySequence::Copy)) {
            return perform(QStringLiteral("edit.copy"));
        }
    }
    if (event->type() == QEvent::ShortcutOverride && watched == table_) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Return || key == Qt::Key_Enter) {
            event->accept(); // opens the run instead of narrowing a range
        }
    }
    if (event->type() == QEvent::KeyPress && watched == filter_ &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down) {
        table_->setFocus();
        return true;
    }
    return View::eventFilter(watched, event);
}

} // namespace vitrine::ui
