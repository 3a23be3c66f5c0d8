// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The table of runs: how rows look, which columns are shown, what the menus offer.
#include <QHeaderView>
#include <QMenu>
#include <QPlainTextEdit>
#include <QSettings>
#include <QStyledItemDelegate>
#include <QTableView>

#include "ui/views/sessions/run_panel.h"
#include "ui/views/sessions/sessions_view.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kStretched = RunTable::Name;
constexpr int kWidths[RunTable::ColumnCount] = {118, 210, 100, 144, 76, 84, 70, 78, 130, 76, 150, 92, 84, 200};
constexpr bool kShownAtFirst[RunTable::ColumnCount] = {true, true, true,  true,  true,  true,  true,
                                                       true, true, false, false, false, false, false};
constexpr char kColumnsKey[] = "sessions/columns";

/// Rows in the table's font, with the state's icon before its word.
class RunDelegate final : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
        QStyledItemDelegate::initStyleOption(option, index);
        const ThemeTokens& t = themeTokens();
        option->font = Theme::instance().font(TypeRole::Table);
        const bool main = index.column() <= RunTable::Name || RunTable::numeric(index.column());
        const QColor color = main || option->state & QStyle::State_Selected ? t.text1 : t.text2;
        option->palette.setColor(QPalette::Text, color);
        option->palette.setColor(QPalette::HighlightedText, t.text1);
        option->palette.setColor(QPalette::Highlight, t.selection);
        option->state &= ~QStyle::State_HasFocus;
        if (index.column() == RunTable::State) {
            option->features |= QStyleOptionViewItem::HasDecoration;
            option->decorationSize = QSize(14, 14);
            option->icon = stateIcon(static_cast<sessions::RunStatus>(index.data(RunTable::StatusRole).toInt()));
        }
    }

private:
    static QIcon stateIcon(sessions::RunStatus status) {
        const ThemeTokens& t = themeTokens();
        switch (status) {
        case sessions::RunStatus::Running:
            return icon(QStringLiteral("run"), t.accent);
        case sessions::RunStatus::Done:
            return icon(QStringLiteral("check"), t.good);
        case sessions::RunStatus::Cancelled:
            return icon(QStringLiteral("stop"), t.warn);
        case sessions::RunStatus::Interrupted:
            return icon(QStringLiteral("close"), t.warn);
        default:
            return icon(QStringLiteral("warning"), t.bad);
        }
    }
};

} // namespace

void SessionsView::buildTable() {
    table_ = new QTableView(this);
    table_->setModel(proxy_);
    table_->setAccessibleName(tr("Runs of the session"));
    table_->setFrameShape(QFrame::NoFrame);
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
    table_->setEditTriggers(QAbstractItemView::EditKeyPressed);
    table_->setTabKeyNavigation(false);
    table_->setItemDelegate(new RunDelegate(table_));
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(24);
    table_->verticalHeader()->setMinimumSectionSize(24);
    table_->setContextMenuPolicy(Qt::CustomContextMenu);
    QHeaderView* head = table_->horizontalHeader();
    head->setFixedHeight(24);
    head->setHighlightSections(false);
    head->setMinimumSectionSize(48);
    head->setContextMenuPolicy(Qt::CustomContextMenu);
    head->setToolTip(tr("Right-click to choose columns"));
    table_->setSortingEnabled(true);
    table_->sortByColumn(RunTable::When, Qt::DescendingOrder);
    for (int i = 0; i < RunTable::ColumnCount; ++i) {
        table_->setColumnWidth(i, kWidths[i]);
    }
    head->setSectionResizeMode(kStretched, QHeaderView::Stretch);
    loadColumns();
    const auto colours = [this] {
        QPalette palette = table_->palette();
        palette.setColor(QPalette::Base, themeTokens().canvas);
        table_->setPalette(palette);
        table_->horizontalHeader()->setPalette(palette);
    };
    connect(&Theme::instance(), &Theme::changed, table_, colours);
    colours();
    table_->installEventFilter(this);
    setBody(table_);
    connect(head, &QHeaderView::customContextMenuRequested, this, &SessionsView::columnMenu);
    connect(table_, &QTableView::customContextMenuRequested, this, &SessionsView::contextMenu);
    connect(table_, &QTableView::doubleClicked, this, &SessionsView::openRun);
    connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &SessionsView::onChosen);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &SessionsView::onChosen);
}

void SessionsView::contextMenu(const QPoint& position) {
    QMenu menu(this);
    const bool one = chosen().size() == 1;
    const bool writable = !context().document->readOnly();
    const auto add = [&](const QString& text, bool on, auto&& call) {
        QAction* action = menu.addAction(text);
        action->setEnabled(on);
        connect(action, &QAction::triggered, this, call);
    };
    add(tr("Open"), one, [this] { openRun(); });
    add(tr("Set as baseline B"), one, [this] { perform(QStringLiteral("compare.baseline")); });
    add(tr("Compare"), chosen().size() >= 2, [this] { compare(); });
    add(tr("Run again…"), one, [this] { runAgain(); });
    menu.addSeparator();
    add(tr("Rename"), one && writable, [this] { perform(QStringLiteral("edit.rename")); });
    add(tr("Edit tags"), one, [this] { table_->edit(proxy_->index(table_->currentIndex().row(), RunTable::Tags)); });
    add(tr("Edit note"), one, [this] { panel_->note()->setFocus(); });
    menu.addSeparator();
    add(tr("Export tables as CSV…"), one, [this] { exportRun(ExportFormat::Csv); });
    add(tr("Export Chrome trace…"), one, [this] { exportRun(ExportFormat::ChromeTrace); });
    menu.addSeparator();
    add(tr("Delete…"), !chosen().empty() && writable, [this] { deleteRuns(); });
    menu.exec(table_->viewport()->mapToGlobal(position));
}

void SessionsView::columnMenu(const QPoint& position) {
    QMenu menu(this);
    for (int column = 0; column < RunTable::ColumnCount; ++column) {
        QAction* action = menu.addAction(RunTable::title(column));
        action->setCheckable(true);
        action->setChecked(!table_->isColumnHidden(column));
        action->setEnabled(column != RunTable::Name);
        connect(action, &QAction::toggled, this, [this, column](bool on) { setColumnShown(column, on); });
    }
    menu.exec(table_->horizontalHeader()->mapToGlobal(position));
}

void SessionsView::setColumnShown(int column, bool on) {
    table_->setColumnHidden(column, !on);
    saveColumns();
}

void SessionsView::loadColumns() {
    QStringList shown;
    if (!context().settingsFile.isEmpty()) {
        shown =
            QSettings(context().settingsFile, QSettings::IniFormat).value(QLatin1String(kColumnsKey)).toStringList();
    }
    for (int column = 0; column < RunTable::ColumnCount; ++column) {
        const bool on = shown.isEmpty() ? kShownAtFirst[column] : shown.contains(QString::number(column));
        table_->setColumnHidden(column, !on && column != RunTable::Name);
    }
}

void SessionsView::saveColumns() const {
    if (context().settingsFile.isEmpty()) {
        return;
    }
    QStringList shown;
    for (int column = 0; column < RunTable::ColumnCount; ++column) {
        if (!table_->isColumnHidden(column)) {
            shown << QString::number(column);
        }
    }
    QSettings(context().settingsFile, QSettings::IniFormat).setValue(QLatin1String(kColumnsKey), shown);
}

} // namespace vitrine::ui
