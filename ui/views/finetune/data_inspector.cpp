// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/data_inspector.h"

#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"
#include "ui/models/finetune/training_text.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/inspector_column.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_rows.h"
#include "ui/widgets/plots/length_plot.h"
#include "ui/widgets/plots/lost_table.h"

namespace vitrine::ui {

namespace {

constexpr int kInspectorRow = 22;
constexpr std::size_t kNamedLines = 3, kMostNamedLines = 7;
constexpr QLatin1StringView kReasonLink("reason:");

/// Words that lead somewhere, in a colour.
QString linkText(const QString& to, const QString& words, const QColor& color) {
    return QStringLiteral("<a style='color:%1;text-decoration:none' href='%2'>%3</a>").arg(color.name(), to, words);
}

FactRow factRow(const QString& name, const QString& value, const QString& more, bool strong = false) {
    FactRow row;
    row.name = name;
    row.values = {{value, TextColor::Text1}, {more, TextColor::Text2}};
    row.strong = strong;
    row.muted = !strong;
    return row;
}

/// The ground of a head that warns, with its sign.
class WarnHead final : public QWidget {
public:
    explicit WarnHead(QWidget* parent) : QWidget(parent) { setFixedHeight(28); }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        const ThemeTokens& t = themeTokens();
        painter.fillRect(rect(), t.warnFill);
        hairline(painter, 0, width(), 0, t.line1);
        painter.drawPixmap(QPointF(12, 7), iconPixmap(QStringLiteral("warning"), 14, t.warn, deviceRatio(painter)));
    }
};

} // namespace

DataInspector::DataInspector() {
    QVBoxLayout* column = inspectorColumn(this);
    QWidget* content = column->parentWidget();
    totals_ = new FactRows(tr("Rows and tokens"), content);
    totals_->setRowHeight(kInspectorRow);
    column->addWidget(totals_);
    buildCut(column);
    const auto section = [&](const QString& title, TextLabel** note) {
        auto* box = new QWidget(content);
        auto* inner = new QVBoxLayout(box);
        inner->setContentsMargins(0, 0, 0, 0);
        inner->setSpacing(0);
        auto* line = new Surface(Surface::Fill::Panel, Surface::Top, box);
        line->setFixedHeight(1);
        inner->addWidget(line);
        auto* head = new DockHeader(title, box);
        *note = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, head);
        head->addControl(*note);
        inner->addWidget(head);
        column->addWidget(box);
        return box;
    };
    leftOut_ = section(tr("Left out"), &leftOutRows_);
    linkToAllRows(leftOutRows_);
    leftOutLines_ = new QLabel(leftOut_);
    leftOutLines_->setFont(Theme::instance().font(TypeRole::Table));
    leftOutLines_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    leftOutLines_->setContentsMargins(12, 2, 12, 4);
    leftOut_->layout()->addWidget(leftOutLines_);
    connect(leftOutLines_, &QLabel::linkActivated, this, [this](const QString& link) {
        if (link.startsWith(kReasonLink)) {
            RowFilter filter;
            filter.leftOut = static_cast<engine::LeftOutReason>(link.mid(kReasonLink.size()).toInt());
            emit tableWanted(filter);
        } else {
            emit lineWanted(link.toLongLong());
        }
    });
    lengths_ = section(tr("Length of rows"), &axes_);
    linkToAllRows(axes_);
    plot_ = new LengthPlot(tr("Length of rows"), lengths_);
    plot_->setToolTip(tr("A click on a bar, or a drag over several, lists the rows of these lengths"));
    connect(plot_, &LengthPlot::rangeChosen, this, [this](qint64 from, qint64 to) {
        RowFilter filter;
        filter.from = from;
        filter.to = to;
        emit tableWanted(filter);
    });
    lengths_->layout()->addWidget(plot_);
    packing_ = section(tr("After packing"), &batch_);
    packed_ = new FactRows(tr("After packing"), packing_);
    packed_->setRowHeight(kInspectorRow);
    packing_->layout()->addWidget(packed_);
    column->addStretch(1);
    connect(plot_, &PlotWidget::readoutChanged, this, &DataInspector::readoutChanged);
    connect(lost_, &PlotWidget::readoutChanged, this, &DataInspector::readoutChanged);
    connect(&Theme::instance(), &Theme::changed, this, [this] {
        if (set_) {
            showCut(); // links have a colour of the theme
            showLeftOut();
        }
    });
    setFilter({});
    setData(nullptr);
}

/// A link in the label takes the filter away.
void DataInspector::linkToAllRows(TextLabel* label) {
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    connect(label, &QLabel::linkActivated, this, [this] { emit tableWanted({}); });
}

void DataInspector::buildCut(QVBoxLayout* column) {
    cut_ = new QWidget;
    auto* inner = new QVBoxLayout(cut_);
    inner->setContentsMargins(0, 0, 0, 0);
    inner->setSpacing(0);
    auto* head = new WarnHead(cut_);
    auto* words = new QHBoxLayout(head);
    words->setContentsMargins(38, 0, 12, 0);
    cutTitle_ = new QLabel(head);
    cutTitle_->setFont(Theme::instance().font(TypeRole::Table, true));
    cutTitle_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    cutTitle_->setToolTip(tr("Lists these rows"));
    connect(cutTitle_, &QLabel::linkActivated, this, [this] {
        RowFilter filter;
        filter.cut = true;
        emit tableWanted(filter);
    });
    cutTrained_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, head);
    words->addWidget(cutTitle_, 1);
    words->addWidget(cutTrained_);
    inner->addWidget(head);
    lost_ = new LostTable(tr("Rows that are cut"), cut_);
    inner->addWidget(lost_);
    connect(lost_, &ItemPlot::itemClicked, this, [this](int item) { emit lineWanted(lost_->lineOf(item)); });
    noAnswer_ = new Surface(Surface::Fill::Panel, Surface::Top, cut_);
    auto* row = new QHBoxLayout(noAnswer_);
    row->setContentsMargins(12, 5, 12, 7);
    row->setSpacing(8);
    noAnswerText_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, noAnswer_);
    row->addWidget(noAnswerText_, 1);
    auto* end = new QPushButton(tr("Keep its end"), noAnswer_);
    auto* skip = new QPushButton(tr("Skip it"), noAnswer_);
    for (QPushButton* button : {end, skip}) {
        setControlHeight(button, 22);
        row->addWidget(button);
    }
    connect(end, &QPushButton::clicked, this,
            [this] { emit exceptionWanted(noAnswerLine_, QStringLiteral("keep-end")); });
    connect(skip, &QPushButton::clicked, this, [this] { emit exceptionWanted(noAnswerLine_, QStringLiteral("skip")); });
    inner->addWidget(noAnswer_);
    column->addWidget(cut_);
}

void DataInspector::setData(const DataSetPtr& set) {
    set_ = set;
    for (QWidget* part : {static_cast<QWidget*>(totals_), cut_, leftOut_, lengths_, packing_}) {
        part->setVisible(set != nullptr);
    }
    if (!set) {
        return;
    }
    showTotals();
    showCut();
    showLeftOut();
    const engine::DataSummary& s = set->summary;
    std::vector<LengthBar> bars;
    bars.reserve(s.lengths.size());
    for (const engine::LengthBin& bin : s.lengths) {
        bars.push_back({bin.from, bin.to, bin.rows, bin.tokens});
    }
    plot_->setBars(std::move(bars), s.length, s.cutRows, s.medianTokens);
    showPacking();
}

void DataInspector::setFilter(const RowFilter& filter) {
    plot_->setChosen(filter.from, filter.to);
    axes_->setText(filter.to > 0
                       ? linkText(QStringLiteral("all"), tr("%1 ×").arg(filterText(filter)), themeTokens().accent)
                       : tr("rows, log; tokens, log"));
}

void DataInspector::setStepSeconds(double seconds) {
    stepSeconds_ = seconds;
    if (set_) {
        showPacking();
    }
}

void DataInspector::showTotals() {
    const engine::DataSummary& s = set_->summary;
    const auto share = [](std::int64_t part, std::int64_t whole) {
        return shareText(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
    };
    std::vector<FactRow> rows{
        factRow(tr("rows used"), countText(s.used), tr("of %1").arg(countText(s.rows))),
        factRow(tr("tokens"), countText(s.tokens), tr("mean %1").arg(countText(s.used > 0 ? s.tokens / s.used : 0)))};
    if (s.conversations > 0) {
        rows.push_back(
            factRow(tr("added by the template"), countText(s.templateTokens), share(s.templateTokens, s.tokens)));
    }
    rows.push_back(factRow(tr("kept after the cut"), countText(s.kept), share(s.kept, s.tokens)));
    rows.push_back(
        factRow(tr("trained tokens"), countText(s.trained), tr("%1 of kept").arg(shareText(s.trainedShare())), true));
    rows.push_back(factRow(tr("longest row"), countText(s.longestTokens),
                           tr("%1 %2").arg(placeWord(s, true), countText(s.longestLine))));
    totals_->setRows(std::move(rows), {80, 104});
}

void DataInspector::showCut() {
    const engine::DataSummary& s = set_->summary;
    cut_->setVisible(!s.cut.empty());
    if (s.cut.empty()) {
        return;
    }
    std::vector<LostLine> lines;
    noAnswerLine_ = 0;
    for (const engine::CutRow& row : s.cut) {
        lines.push_back({row.line, row.tokens, row.lost, row.lostTrained, row.keptTrained == 0});
        noAnswerLine_ = noAnswerLine_ == 0 && row.keptTrained == 0 ? row.line : noAnswerLine_;
    }
    if (lines.size() > LostTable::kMostLines) { // those that lose most
        std::stable_sort(lines.begin(), lines.end(),
                         [](const LostLine& one, const LostLine& other) { return one.lost > other.lost; });
    }
    const std::int64_t count = s.cutRows;
    const QString title = count == 1 ? tr("1 row loses %1 tokens").arg(countText(s.lost))
                                     : tr("%1 rows lose %2 tokens").arg(countText(count), countText(s.lost));
    cutTitle_->setText(linkText(QStringLiteral("cut"), title, themeTokens().warn));
    cutTrained_->setText(tr("%1 trained").arg(countText(s.lostTrained)));
    lost_->setLines(std::move(lines), placeWord(s));
    noAnswer_->setVisible(noAnswerLine_ > 0);
    noAnswerText_->setText(s.keepNoAnswer == 1
                               ? tr("%1 %2 keeps no answer.").arg(placeWord(s), countText(noAnswerLine_))
                               : tr("%1 keep no answer; %2 %3:")
                                     .arg(countText(s.keepNoAnswer), placeWord(s, true), countText(noAnswerLine_)));
}

void DataInspector::showLeftOut() {
    const engine::DataSummary& s = set_->summary;
    leftOut_->setVisible(s.leftOutRows() > 0);
    const QColor accent = themeTokens().accent, plain = themeTokens().text2;
    leftOutRows_->setText(linkText(QStringLiteral("all"),
                                   s.leftOutRows() == 1 ? tr("1 row") : tr("%1 rows").arg(countText(s.leftOutRows())),
                                   plain));
    QString html = QStringLiteral("<table cellspacing='0' cellpadding='2'>");
    using enum engine::LeftOutReason;
    for (const engine::LeftOutReason reason : {Duplicate, NoAnswer, Unreadable, TooLong}) {
        const auto rows = leftOutFor(s, reason);
        if (rows.empty()) {
            continue;
        }
        const std::int64_t count = leftOutCount(s, reason);
        const QString all = kReasonLink + QString::number(static_cast<int>(reason));
        const std::size_t shown = rows.size() > kMostNamedLines ? kNamedLines : std::min(rows.size(), kNamedLines + 1);
        QStringList links;
        for (std::size_t i = 0; i < shown; ++i) {
            links << linkText(QString::number(rows[i]->line), countText(rows[i]->line), accent);
        }
        if (std::cmp_greater(count, shown)) {
            links << linkText(all, tr("%1 more").arg(countText(count - static_cast<std::int64_t>(shown))), accent);
        }
        html += QStringLiteral("<tr><td style='padding-right:16px'>%1</td><td align='right' "
                               "style='padding-right:10px'>%2</td><td>%3</td></tr>")
                    .arg(linkText(all, leftOutName(reason), plain), countText(count),
                         links.join(QStringLiteral("&nbsp;&nbsp; ")));
    }
    leftOutLines_->setText(html + QStringLiteral("</table>"));
}

void DataInspector::showPacking() {
    const engine::DataSummary& s = set_->summary;
    batch_->setText(s.batch == 1 ? tr("batch of 1 sequence") : tr("batch of %1 sequences").arg(countText(s.batch)));
    std::vector<FactRow> rows{
        factRow(tr("sequences"), countText(s.sequences), tr("%1 to validate").arg(countText(s.validationSequences))),
        factRow(tr("fill"), shareText(s.fill()), tr("%1 padding").arg(countText(s.padding))),
        factRow(tr("steps an epoch"), countText(s.stepsOfEpoch), tr("rows alone %1").arg(countText(s.trainRows)))};
    const bool known = stepSeconds_ > 0;
    const double tokens = static_cast<double>(s.batch * s.length);
    rows.push_back(factRow(tr("time a step, plan"), known ? longTimeText(stepSeconds_) : unknownText(),
                           known ? tr("%1 tok/s").arg(countText(std::llround(tokens / stepSeconds_))) : QString()));
    rows.push_back(factRow(tr("time an epoch, plan"),
                           known ? longTimeText(stepSeconds_ * static_cast<double>(s.stepsOfEpoch)) : unknownText(), {},
                           true));
    packed_->setRows(std::move(rows), {80, 104});
}

QString DataInspector::asText() const {
    return set_ ? totals_->asText() + packed_->asText() : QString();
}

QList<QWidget*> DataInspector::stops() const {
    return {cutTitle_, lost_, leftOutLines_, plot_, packed_};
}

} // namespace vitrine::ui
