// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/switch_section.h"

#include <QHeaderView>
#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <algorithm>
#include <array>

#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kSwitchRow = 41, kSwitchHead = 24, kSwitchLine = 16;
constexpr std::array<int, 2> kSwitchNumbers{112, 80}; ///< widths of the columns of numbers
constexpr double kBarsLeft = 108, kBarsRight = 90, kBarRow = 20, kBarHeight = 10;

/// Rows of two lines; the first cell has a check box where it has a share.
class SwitchDelegate final : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const ThemeTokens& t = themeTokens();
        const QRectF cell(option.rect);
        painter->fillRect(cell, (option.state & QStyle::State_Selected) != 0 ? t.selection : t.panel);
        const QVariant on = index.sibling(index.row(), 0).data(ShareRole);
        if (index.column() == 0 && on.isValid()) {
            paintBox(*painter, QRectF(cell.left() + 12, cell.center().y() - 7, 14, 14), on.toDouble() > 0.5, t);
        }
        const QStringList lines = index.data().toString().split(QLatin1Char('\n'));
        const int side = index.column() == 0 ? Qt::AlignLeft : Qt::AlignRight;
        const QRectF inner = cell.adjusted(index.column() == 0 ? 38 : 0, 0, index.column() == 0 ? -2 : -12, 0);
        const double top = std::floor(cell.center().y() - (lines.size() > 1 ? 15 : 8));
        const std::array<QFont, 2> fonts{Theme::instance().font(TypeRole::Table),
                                         Theme::instance().font(TypeRole::Axis)};
        for (qsizetype i = 0; i < std::min<qsizetype>(2, lines.size()); ++i) {
            const QFont& font = fonts[static_cast<std::size_t>(i)];
            drawText(*painter, QRectF(inner.left(), top + static_cast<double>(i) * 15, inner.width(), kSwitchLine),
                     Qt::AlignVCenter | side, QFontMetricsF(font).elidedText(lines[i], Qt::ElideRight, inner.width()),
                     i == 0 ? t.text1 : t.text3, font);
        }
    }

private:
    static void paintBox(QPainter& painter, const QRectF& box, bool on, const ThemeTokens& t) {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(on ? t.accentFill : t.line2, 1));
        painter.setBrush(on ? QBrush(t.accentFill) : QBrush(Qt::NoBrush));
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
        painter.restore();
        if (on) {
            painter.drawPixmap(QPointF(box.left() + 1, box.top() + 1),
                               iconPixmap(QStringLiteral("check"), 12, t.onAccent, deviceRatio(painter)));
        }
    }
};

/// "Switch  Peak  Step time" over the rows.
class SwitchHead final : public QWidget {
public:
    explicit SwitchHead(QWidget* parent) : QWidget(parent) { setFixedHeight(kSwitchHead); }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& t = themeTokens();
        QPainter painter(this);
        painter.fillRect(rect(), t.panel);
        hairline(painter, 0, width(), height() - 1, t.line0);
        const QFont font = Theme::instance().font(TypeRole::Axis);
        drawText(painter, QRectF(12, 0, 120, kSwitchHead), Qt::AlignVCenter, QObject::tr("Switch"), t.text3, font);
        drawText(painter, QRectF(0, 0, width() - kSwitchNumbers[1] - 12, kSwitchHead),
                 Qt::AlignVCenter | Qt::AlignRight, QObject::tr("Peak"), t.text3, font);
        drawText(painter, QRectF(0, 0, width() - 12, kSwitchHead), Qt::AlignVCenter | Qt::AlignRight,
                 QObject::tr("Step time"), t.text3, font);
    }
};

/// The columns follow the width.
class SwitchView final : public QTableView {
public:
    using QTableView::QTableView;
    void fit() {
        setColumnWidth(1, kSwitchNumbers[0]);
        setColumnWidth(2, kSwitchNumbers[1]);
        setColumnWidth(0, std::max(40, viewport()->width() - kSwitchNumbers[0] - kSwitchNumbers[1]));
    }

protected:
    void resizeEvent(QResizeEvent* event) override {
        QTableView::resizeEvent(event);
        fit();
    }
    void wheelEvent(QWheelEvent* event) override { event->ignore(); } // the panel around it scrolls
};

} // namespace

ContextBars::ContextBars(QWidget* parent) : ItemPlot(tr("Longest context of each set of switches"), parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void ContextBars::setLimits(std::vector<ContextLimit> limits, std::int64_t context, std::uint64_t host) {
    limits_ = std::move(limits);
    context_ = context;
    host_ = host;
    updateGeometry();
    invalidate();
}

QSize ContextBars::sizeHint() const {
    return {300, static_cast<int>(4 + kBarRow * static_cast<double>(limits_.size()) + (limits_.empty() ? 0 : 18))};
}

double ContextBars::longest() const {
    std::int64_t most = std::max<std::int64_t>(1, context_);
    for (const ContextLimit& limit : limits_) {
        most = std::max(most, limit.longest);
    }
    return static_cast<double>(most);
}

QImage ContextBars::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.panel);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Table, true);
    const QFont small = Theme::instance().font(TypeRole::Axis);
    const double wide = std::max(1.0, size.width() - kBarsLeft - kBarsRight), most = longest();
    for (std::size_t i = 0; i < limits_.size(); ++i) {
        const ContextLimit& limit = limits_[i];
        const double top = 4 + kBarRow * static_cast<double>(i);
        const QFont& own = limit.chosen ? strong : font;
        drawText(painter, QRectF(12, top, kBarsLeft - 14, 16), Qt::AlignVCenter, limit.name,
                 limit.chosen ? t.text1 : t.text2, limit.chosen ? font : font);
        painter.fillRect(
            QRectF(kBarsLeft, top + 3, std::max(2.0, static_cast<double>(limit.longest) / most * wide), kBarHeight),
            limit.chosen ? t.accentFill : t.line2);
        drawText(painter, QRectF(0, top, size.width() - 12, 16), Qt::AlignVCenter | Qt::AlignRight,
                 limit.longest > 0 ? countText(limit.longest) : tr("none"), t.text1, own);
    }
    if (!limits_.empty() && context_ > 0) {
        const double x = kBarsLeft + static_cast<double>(context_) / most * wide;
        const double bottom = 4 + kBarRow * static_cast<double>(limits_.size());
        plumbline(painter, x, 3, bottom - 2, t.text1);
        const QString own = tr("this run %1").arg(countText(context_));
        const double left = std::min(x - 2, size.width() - textWidth(own, small) - 12);
        drawText(painter, QRectF(std::max(12.0, left), bottom - 1, textWidth(own, small) + 2, 14), Qt::AlignVCenter,
                 own, t.text2, small);
        const QString host = host_ > 0 ? tr("host needs %1").arg(bytesText(host_)) : QString();
        if (left + textWidth(own, small) + textWidth(host, small) + 24 < size.width()) {
            drawText(painter, QRectF(0, bottom - 1, size.width() - 12, 14), Qt::AlignVCenter | Qt::AlignRight, host,
                     t.text3, small);
        }
    }
    return image;
}

int ContextBars::itemAt(QPointF position) const {
    const int row = static_cast<int>((position.y() - 4) / kBarRow);
    return position.y() >= 4 && row < itemCount() ? row : -1;
}

QString ContextBars::itemText(int item) const {
    const ContextLimit& limit = limits_[static_cast<std::size_t>(item)];
    return tr("%1: rows of %2 tokens fit").arg(limit.name, countText(limit.longest));
}

QRectF ContextBars::itemFrame(int item) const {
    return {4, 4 + kBarRow * item - 2, std::max(1.0, static_cast<double>(width()) - 8), kBarRow};
}

SwitchSection::SwitchSection(QWidget* parent)
    : QWidget(parent), header_(new DockHeader(tr("What each switch buys"))), limitHeader_(new DockHeader({})),
      band_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_)),
      limitBand_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, limitHeader_)),
      why_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this)),
      hint_(new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this)), view_(new SwitchView(this)),
      model_(new FlatTreeModel(this)), hintBox_(new QWidget(this)), branch_(new QPushButton(hintBox_)),
      bars_(new ContextBars(this)) {
    header_->addControl(band_);
    limitHeader_->addControl(limitBand_);
    why_->setWordWrap(true);
    why_->setContentsMargins(12, 8, 12, 8);
    view_->setModel(model_);
    view_->setAccessibleName(tr("What each switch buys"));
    view_->setItemDelegate(new SwitchDelegate(view_));
    view_->setFrameShape(QFrame::NoFrame);
    view_->setShowGrid(false);
    view_->setSelectionBehavior(QAbstractItemView::SelectRows);
    view_->setSelectionMode(QAbstractItemView::SingleSelection);
    view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view_->setTabKeyNavigation(false);
    view_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    view_->horizontalHeader()->hide();
    view_->horizontalHeader()->setMinimumSectionSize(16);
    view_->verticalHeader()->hide();
    view_->verticalHeader()->setMinimumSectionSize(kSwitchRow);
    view_->verticalHeader()->setDefaultSectionSize(kSwitchRow);
    buildHint();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(header_);
    column->addWidget(why_);
    head_ = new SwitchHead(this);
    column->addWidget(head_);
    column->addWidget(view_);
    column->addWidget(hintBox_);
    column->addWidget(limitHeader_);
    column->addWidget(bars_);
    connect(view_, &QTableView::clicked, this, &SwitchSection::choose);
    connect(view_, &QTableView::activated, this, &SwitchSection::choose);
    connect(branch_, &QPushButton::clicked, this, [this] {
        const SwitchPrice& one = prices_->switches[shown_->row];
        emit branchWanted(textOf(one.key), textOf(one.other));
    });
    setPrices(std::nullopt, std::nullopt, nullptr, 0, {});
}

void SwitchSection::buildHint() {
    auto* box = new QVBoxLayout(hintBox_);
    box->setContentsMargins(12, 8, 12, 10);
    box->setSpacing(8);
    hint_->setTextFormat(Qt::RichText);
    hint_->setWordWrap(true);
    setControlHeight(branch_, 22);
    box->addWidget(hint_);
    box->addWidget(branch_, 0, Qt::AlignLeft);
}

void SwitchSection::setPrices(const std::optional<SwitchPrices>& prices, const std::optional<MeasuredPair>& measured,
                              const TrainingRunPtr& run, std::int64_t checkpoint, const QString& why) {
    prices_ = prices;
    setVisible(prices.has_value() || !why.isEmpty());
    why_->setText(why);
    why_->setVisible(!prices && !why.isEmpty());
    band_->setText(prices ? planBandText(prices->band) : QString());
    limitBand_->setText(band_->text());
    for (QWidget* part :
         {head_, static_cast<QWidget*>(view_), static_cast<QWidget*>(limitHeader_), static_cast<QWidget*>(bars_)}) {
        part->setVisible(prices.has_value());
    }
    shown_ = prices && run != nullptr ? switchHint(*prices, *run, checkpoint) : std::nullopt;
    hintBox_->setVisible(shown_.has_value());
    if (!prices) {
        model_->setTree(std::make_shared<FlatTree>());
        chosen_ = 0;
        return;
    }
    model_->setTree(switchTable(*prices, measured));
    view_->setFixedHeight(model_->rowCount() * kSwitchRow);
    static_cast<SwitchView*>(view_)->fit();
    limitHeader_->setTitle(tr("Longest context in %1").arg(bytesText(prices->budget)));
    bars_->setLimits(prices->limits, prices->context, prices->host);
    if (shown_) {
        hint_->setText(QStringLiteral("<b>%1</b> %2").arg(shown_->title.toHtmlEscaped(), shown_->text.toHtmlEscaped()));
        branch_->setText(shown_->button);
        branch_->setVisible(!shown_->button.isEmpty());
    }
}

/// Again on the same row: none.
void SwitchSection::choose(const QModelIndex& index) {
    const FlatNode* node = model_->node(index);
    chosen_ = node == nullptr || node->key == chosen_ ? 0 : node->key;
    if (chosen_ == 0) {
        view_->clearSelection();
    }
    const bool priced = chosen_ > 0 && prices_ && chosen_ <= prices_->switches.size();
    const SwitchPrice* one = priced ? &prices_->switches[chosen_ - 1] : nullptr;
    emit outlineWanted(
        one != nullptr && one->known ? std::optional<quint64>(one->otherPeak) : std::nullopt,
        one != nullptr ? (one->on ? tr("without %1: %2") : tr("with %1: %2")).arg(one->name, bytesText(one->otherPeak))
                       : QString());
}

QString SwitchSection::asText() const {
    return prices_ ? asMarkdown(model_->tree()) : QString();
}

} // namespace vitrine::ui
