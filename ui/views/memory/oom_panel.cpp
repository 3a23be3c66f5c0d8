// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/oom_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QTableView>
#include <QTreeView>
#include <QVBoxLayout>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/models/memory/oom_table.h"
#include "ui/views/memory/fit_panel.h"
#include "ui/views/memory/phase_plot.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/budget_bar.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr int kNarrow = 1180;
constexpr int kChangesWidth = 306;
constexpr int kHolderRows = 10;     ///< seen without scrolling at least
constexpr int kHolderRowsOpen = 12; ///< that a window of usual height shows

constexpr profiler::GroupBy kGroups[] = {profiler::GroupBy::Category, profiler::GroupBy::Layer, profiler::GroupBy::Op};

QString coloured(const QString& text, const QColor& color, bool strong) {
    return QStringLiteral("<span style=\"color:%1;%2\">%3</span>")
        .arg(color.name(), strong ? QStringLiteral("font-weight:600") : QString(), text.toHtmlEscaped());
}

QWidget* titled(const QString& title, QWidget* right, QWidget* content, QWidget* parent, TextLabel** label = nullptr) {
    auto* box = new QWidget(parent);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* head = new Surface(Surface::Fill::Window, Surface::Bottom, box);
    head->setFixedHeight(28);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(0, 0, 0, 4);
    auto* words = new TextLabel(title, TypeRole::Body, TextColor::Text1, true, head);
    row->addWidget(words);
    row->addStretch(1);
    if (right != nullptr) {
        row->addWidget(right);
    }
    if (label != nullptr) {
        *label = words;
    }
    column->addWidget(head);
    column->addWidget(content, 1);
    return box;
}

QTreeView* tableOf(FlatTreeModel* model, bool tree, const QString& name, QWidget* parent) {
    auto* view = new QTreeView(parent);
    setUpTable(view, tree, false);
    view->setSortingEnabled(false);
    view->setAccessibleName(name);
    view->setModel(model);
    setUpCopy(view, model);
    view->header()->setStretchLastSection(false);
    view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    const auto colours = [view] {
        QPalette palette = view->palette();
        palette.setColor(QPalette::Base, themeTokens().window);
        view->setPalette(palette);
        view->header()->setPalette(palette);
    };
    QObject::connect(&Theme::instance(), &Theme::changed, view, colours);
    colours();
    return view;
}

} // namespace

OomPanel::OomPanel(const ViewServices& context, QWidget* parent) : QWidget(parent), context_(context) {
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Why out of memory"));
    build();
    connect(&Theme::instance(), &Theme::changed, this, &OomPanel::refresh);
}

QWidget* OomPanel::makeHead() {
    auto* head = new Surface(Surface::Fill::Window, Surface::Bottom, this);
    head->setFixedHeight(32);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(8, 0, 12, 0);
    auto* back = new QPushButton(icon(QStringLiteral("chevron-left")), tr("Memory"), head);
    back->setFlat(true);
    setControlHeight(back, 24);
    row->addWidget(back);
    row->addWidget(new TextLabel(QStringLiteral("/"), TypeRole::Body, TextColor::Text3, false, head));
    row->addWidget(new TextLabel(tr("Why out of memory"), TypeRole::Title, TextColor::Text1, true, head));
    row->addStretch(1);
    which_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, head);
    row->addWidget(which_);
    auto* copy = new QPushButton(icon(QStringLiteral("copy")), tr("Copy as text"), head);
    setControlHeight(copy, 24);
    row->addWidget(copy);
    table_ = new QPushButton(tr("Show as table"), head);
    table_->setCheckable(true);
    setControlHeight(table_, 24);
    row->addWidget(table_);
    connect(table_, &QPushButton::toggled, this, &OomPanel::showTable);
    row->addWidget(new KeyHint(tr("Esc"), head));
    connect(back, &QPushButton::clicked, this, &OomPanel::backWanted);
    connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(asText()); });
    return head;
}

QWidget* OomPanel::makeTop(QWidget* parent) {
    auto* top = new Surface(Surface::Fill::Panel, Surface::Bottom, parent);
    auto* topColumn = new QVBoxLayout(top);
    topColumn->setContentsMargins(24, 10, 24, 8);
    topColumn->setSpacing(6);
    sentence_ = new QLabel(top);
    sentence_->setWordWrap(true);
    sentence_->setTextFormat(Qt::RichText);
    cause_ = new TextLabel({}, TypeRole::Body, TextColor::Text2, false, top);
    cause_->setWordWrap(true);
    bar_ = new BudgetBar(false, top);
    topColumn->addWidget(sentence_);
    topColumn->addWidget(cause_);
    topColumn->addSpacing(6);
    topColumn->addWidget(bar_);
    return top;
}

QWidget* OomPanel::makeMiddle(QWidget* parent) {
    auto* middle = new QWidget(parent);
    columns_ = new QGridLayout(middle);
    columns_->setContentsMargins(24, 10, 16, 8);
    columns_->setHorizontalSpacing(12);
    columns_->setVerticalSpacing(16);
    group_ = new SegmentedControl({tr("Category"), tr("Layer"), tr("Op")}, middle);
    group_->setAccessibleName(tr("Group by"));
    holdersModel_ = new FlatTreeModel(this);
    holders_ = tableOf(holdersModel_, true, tr("What held the memory"), middle);
    holders_->setItemDelegateForColumn(3, new ShareBarDelegate(holders_));
    changesModel_ = new FlatTreeModel(this);
    changes_ = tableOf(changesModel_, false, tr("What changed"), middle);
    changes_->setItemDelegateForColumn(3, new DeltaDelegate(changes_));
    fit_ = new FitPanel(context_, middle);
    phases_ = new PhasePlot(middle);
    auto* changed = new QWidget(middle);
    auto* changedColumn = new QVBoxLayout(changed);
    changedColumn->setContentsMargins(0, 0, 0, 0);
    changedColumn->setSpacing(8);
    changedColumn->addWidget(changes_);
    changedColumn->addWidget(phases_, 1);
    holdersColumn_ = titled(tr("What held the memory"), group_, holders_, middle);
    changesColumn_ = titled({}, nullptr, changed, middle, &changesTitle_);
    fitColumn_ = titled(tr("What would have fitted"), fit_->note(), fit_, middle);
    for (QWidget*& divider : dividers_) {
        divider = new Surface(Surface::Fill::Window, Surface::Left, middle);
        divider->setFixedWidth(1);
    }
    arrange();
    holders_->viewport()->installEventFilter(this);
    changes_->viewport()->installEventFilter(this);
    connect(group_, &SegmentedControl::currentChanged, this, &OomPanel::refresh);
    return middle;
}

void OomPanel::build() {
    auto* page = new QVBoxLayout(this);
    page->setContentsMargins(0, 0, 0, 0);
    page->setSpacing(0);
    page->addWidget(makeHead());

    page_ = new QScrollArea(this);
    page_->setFrameShape(QFrame::NoFrame);
    page_->setWidgetResizable(true);
    page_->setFocusPolicy(Qt::NoFocus);
    twin_ = new QTableView(this);
    twinModel_ = new FlatTreeModel(this);
    setUpTwin(twin_, twinModel_, tr("Why out of memory, as a table"));
    twin_->hide();
    auto* content = new Surface(Surface::Fill::Window, Surface::None, page_);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeTop(content));
    column->addWidget(makeMiddle(content), 1);
    stripTime_ = new TimeCursor(this);
    strip_ = new LaneStack(stripTime_, LaneStack::WithBands, content);
    strip_->setFixedHeight(199);
    stripLane_ = new StackLane(tr("The run up to the failure"), stripTime_, strip_);
    stripLane_->setHeader(false);
    // Held and the budget count what is reserved; the lane shows what tensors take of it.
    stripLane_->setPeakName(tr("Most in tensors"));
    strip_->addLane(stripLane_);
    column->addWidget(strip_);
    page_->setWidget(content);
    page->addWidget(page_, 1);
    page->addWidget(twin_, 1);
    const auto go = [this](const QModelIndex&) { emit goWanted(facts_.event.time); };
    connect(holders_, &QTreeView::activated, this, [this, go](const QModelIndex& index) {
        const FlatNode* node = holdersModel_->node(index);
        if (node != nullptr && (node->key >> 63) == 0) {
            context_.time->select({node->key, 0});
        }
        go(index);
    });
    connect(changes_, &QTreeView::activated, this, go);
    connect(fit_, &FitPanel::tried, this, &OomPanel::experimentWanted);
    connect(fit_, &FitPanel::rowsChanged, this, &OomPanel::updateTwin);
}

void OomPanel::showTable(bool table) {
    page_->setVisible(!table);
    twin_->setVisible(table);
    table_->setText(table ? tr("Show as page") : tr("Show as table"));
    updateTwin();
}

void OomPanel::updateTwin() {
    if (!table_->isChecked() || !timeline_ || timeline_->memory().outOfMemory().empty()) {
        return;
    }
    twinModel_->setTree(oomTable(*timeline_, facts_, kGroups[group_->current()], fit_->shown()));
    twin_->resizeColumnsToContents();
}

void OomPanel::setRun(sessions::RunId run, TimelinePtr timeline) {
    if (run != run_) {
        failure_ = 0;
    }
    run_ = run;
    timeline_ = std::move(timeline);
    stale_ = true;
    if (isVisible()) {
        refresh();
    }
}

void OomPanel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (stale_) {
        refresh();
    }
}

void OomPanel::nextFailure() {
    if (timeline_ && !timeline_->memory().outOfMemory().empty()) {
        failure_ = (failure_ + 1) % timeline_->memory().outOfMemory().size();
        refresh();
    }
}

void OomPanel::refresh() {
    stale_ = false;
    if (!timeline_ || timeline_->memory().outOfMemory().empty()) {
        return;
    }
    const std::size_t count = timeline_->memory().outOfMemory().size();
    failure_ = std::min(failure_, count - 1);
    facts_ = oomSummary(*timeline_, failure_);
    which_->setText(tr("%1 of %2").arg(failure_ + 1).arg(count));
    const ThemeTokens& t = themeTokens();
    sentence_->setFont(Theme::instance().font(TypeRole::Sentence));
    const QString mono =
        QStringLiteral("<span style=\"font-family:'%1'\">%2</span>")
            .arg(Theme::instance().monoFont(TypeRole::Sentence).family(), facts_.tensor.toHtmlEscaped());
    sentence_->setText(QStringLiteral("<span style=\"color:%1\">").arg(t.text1.name()) +
                       tr("%1 asked for %2 to hold %3. Only %4 of the %5 budget were free.")
                           .arg(facts_.asker.toHtmlEscaped(),
                                coloured(bytesText(facts_.event.requested), t.text1, true), mono,
                                coloured(bytesText(facts_.free), t.bad, true), bytesText(facts_.event.budget)) +
                       QStringLiteral("</span>"));
    cause_->setText(facts_.cause);
    std::vector<BudgetShare> parts;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        parts.push_back(
            {textOf(base::categoryName(category)), facts_.held[static_cast<std::size_t>(i)], t.category(category)});
    }
    if (facts_.idle > 0) {
        parts.push_back({idleText(facts_), facts_.idle, {t.panel, t.text2, Hatch::BackDiagonal, 10}});
    }
    if (facts_.unused > 0) {
        parts.push_back({tr("between tensors"), facts_.unused, {t.panel, t.text2, Hatch::BackDiagonal, 10}});
    }
    bar_->set(std::move(parts), facts_.event.budget, facts_.event.requested, facts_.tensor);
    holdersModel_->setTree(holdersTree(*timeline_, facts_, kGroups[group_->current()]));
    int rows = holdersModel_->rowCount();
    for (int row = 0; row < holdersModel_->rowCount(); ++row) {
        const QModelIndex group = holdersModel_->index(row, 0);
        const int children = holdersModel_->rowCount(group);
        const bool open = rows + children <= kHolderRowsOpen; // more would hide the other groups and the total
        holders_->setExpanded(group, open);
        rows += open ? children : 0;
    }
    changesModel_->setTree(changeTable(*timeline_, facts_));
    changesTitle_->setText(tr("What changed since %1").arg(facts_.since));
    phases_->setFailure(timeline_, facts_);
    fit_->setFailure(run_, facts_);
    strip_->setTimeline(timeline_);
    stripLane_->setTimeline(timeline_);
    stripLane_->setBudget(facts_.event.budget);
    const base::TimeNs begin =
        facts_.step != nullptr && facts_.before != nullptr ? facts_.before->begin : timeline_->begin();
    // What came after the failure, counters of a device that was cleared, explains nothing.
    const base::TimeNs end = facts_.event.time + std::max<base::TimeNs>(1, (facts_.event.time - begin) / 12);
    stripTime_->reset({timeline_->begin(), std::max(end, timeline_->end())});
    stripTime_->setRange({begin - (end - begin) / 40, end}, false);
    holders_->setMinimumHeight(kHolderRows * 24 + 26);
    changes_->setFixedHeight((changesModel_->rowCount() + 1) * 24 + 4);
    fitColumns();
}

QString OomPanel::asText() const {
    if (!timeline_ || timeline_->memory().outOfMemory().empty()) {
        return {};
    }
    return oomText(*timeline_, oomSummary(*timeline_, failure_)) + tr("\n\nWhat would have fitted:\n") + fit_->asText();
}

bool OomPanel::waiting() const {
    return isVisible() && fit_->waiting();
}

QString OomPanel::sentence() const {
    return asText().section(QLatin1Char('\n'), 0, 0);
}

void OomPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if ((width() < kNarrow) != narrow_) {
        narrow_ = width() < kNarrow;
        arrange();
    }
}

void OomPanel::arrange() {
    // Wide: three columns. Narrow: what would have fitted stands under the other two.
    for (QWidget* part : {holdersColumn_, changesColumn_, fitColumn_, dividers_[0], dividers_[1]}) {
        columns_->removeWidget(part);
    }
    columns_->addWidget(holdersColumn_, 0, 0);
    columns_->addWidget(dividers_[0], 0, 1);
    columns_->addWidget(changesColumn_, 0, 2);
    columns_->addWidget(dividers_[1], 0, 3);
    if (narrow_) {
        columns_->addWidget(fitColumn_, 1, 0, 1, 5);
    } else {
        columns_->addWidget(fitColumn_, 0, 4);
    }
    dividers_[1]->setVisible(!narrow_);
    columns_->setVerticalSpacing(narrow_ ? 16 : 0);
    columns_->setColumnStretch(0, 396);
    columns_->setColumnStretch(2, kChangesWidth);
    columns_->setColumnStretch(4, narrow_ ? 0 : 584);
    fitColumns();
}

void OomPanel::fitColumns() {
    const auto fit = [](QTreeView* view, int name, std::initializer_list<int> rest) {
        int column = 1;
        int left = view->viewport()->width();
        for (const int width : rest) {
            view->setColumnWidth(column++, width);
            left -= width;
        }
        view->setColumnWidth(0, std::max(name, left));
    };
    fit(holders_, 110, {76, 58, 64});
    fit(changes_, 96, {58, 58, 80});
}

bool OomPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        fitColumns();
    }
    return QWidget::eventFilter(watched, event);
}

void OomPanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().window);
}

} // namespace vitrine::ui
