// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/pinned_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kLabelWidth = 72;
constexpr std::size_t kUsersNamed = 2;

/// Words that lead somewhere: accent, underlined under the pointer and with the focus.
class LinkButton final : public QAbstractButton {
public:
    LinkButton(const QString& text, const QString& tip, QWidget* parent) : QAbstractButton(parent) {
        setText(text);
        setToolTip(tip.isEmpty() ? text : tip);
        setAccessibleName(text);
        setCursor(Qt::PointingHandCursor);
        setFocusPolicy(Qt::StrongFocus);
        setAttribute(Qt::WA_Hover);
        setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    }
    QSize sizeHint() const override {
        return {static_cast<int>(textWidth(text(), Theme::instance().font(TypeRole::Table))) + 2, 16};
    }
    QSize minimumSizeHint() const override { return {24, 16}; }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        QFont font = Theme::instance().font(TypeRole::Table);
        font.setUnderline(underMouse() || hasFocus());
        drawText(painter, QRectF(rect()), Qt::AlignVCenter, text(), themeTokens().accent, font);
    }
};

} // namespace

PinnedPanel::PinnedPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 1, 0, 0);
    column->setSpacing(0);
    header_ = new DockHeader({}, this);
    auto* copy = iconButton(QStringLiteral("copy"), tr("Copy as text"), header_);
    auto* close = iconButton(QStringLiteral("close"), tr("Unpin"), header_);
    header_->addControl(copy);
    header_->addControl(close);
    column->addWidget(header_);
    form_ = new QWidget(this);
    rows_ = new QFormLayout(form_);
    rows_->setContentsMargins(12, 8, 12, 8);
    rows_->setHorizontalSpacing(12);
    rows_->setVerticalSpacing(8);
    rows_->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    rows_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    column->addWidget(form_);
    buttons_ = new QWidget(this);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(12, 2, 12, 8);
    row->setSpacing(8);
    auto* go = new QPushButton(icon(QStringLiteral("link")), tr("Go to op"), buttons_);
    auto* only = new QPushButton(tr("Show only this"), buttons_);
    auto* text = new QPushButton(tr("Copy as text"), buttons_);
    goButton_ = go;
    for (QPushButton* button : {go, only, text}) {
        row->addWidget(button);
    }
    row->addStretch(1);
    column->addWidget(buttons_);
    hint_ = new TextLabel(tr("Click an allocation to pin it here."), TypeRole::Table, TextColor::Text3, false, this);
    hint_->setContentsMargins(12, 10, 12, 10);
    hint_->setWordWrap(true);
    column->addWidget(hint_);
    column->addStretch(1);
    connect(close, &QPushButton::clicked, this, &PinnedPanel::closed);
    connect(go, &QPushButton::clicked, this, [this] { emit scopeWanted(scope_); });
    connect(only, &QPushButton::clicked, this, &PinnedPanel::onlyWanted);
    for (QPushButton* button : {copy, text}) {
        connect(button, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(asText()); });
    }
    clear();
}

void PinnedPanel::addRow(const QString& name, const std::vector<Part>& parts) {
    QStringList words;
    auto* label = new TextLabel(name, TypeRole::Table, TextColor::Text3, false, form_);
    label->setFixedWidth(kLabelWidth);
    label->setElide(true);
    label->setToolTip(name);
    auto* field = new QWidget(form_);
    auto* cells = new QHBoxLayout(field);
    cells->setContentsMargins(0, 0, 0, 0);
    cells->setSpacing(6);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        words << part.text;
        const bool last = i + 1 == parts.size();
        if (part.scope != 0 || part.allocation != 0) {
            auto* link = new LinkButton(part.text, part.tip, field);
            // Queued: what the link leads to may replace the form, and the link with it.
            connect(
                link, &QAbstractButton::clicked, this,
                [this, scope = part.scope, allocation = part.allocation] {
                    allocation != 0 ? emit allocationWanted(allocation) : emit scopeWanted(scope);
                },
                Qt::QueuedConnection);
            buttonsOfLinks_.push_back(link);
            cells->addWidget(link);
        } else {
            auto* text = new TextLabel(part.text, TypeRole::Table, part.color, false, field);
            if (part.mono) {
                text->setFont(Theme::instance().monoFont(TypeRole::Table));
            }
            text->setTextInteractionFlags(Qt::TextSelectableByMouse);
            text->setToolTip(part.tip.isEmpty() ? part.text : part.tip);
            if (last) {
                text->setElide(true);
            } else {
                text->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Preferred);
            }
            cells->addWidget(text, last ? 1 : 0);
            continue;
        }
        if (last) {
            cells->addStretch(1);
        }
    }
    rows_->addRow(label, field);
    text_ << name + QStringLiteral(": ") + words.join(QLatin1Char(' '));
}

void PinnedPanel::addWhere(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row) {
    addRow(tr("Size"), {{bytesText(row.bytes)}, {exactBytesText(row.bytes), TextColor::Text3}});
    if (const QString tensor = tensorText(timeline, row); !tensor.isEmpty()) {
        addRow(tr("Tensor"), {{tensor, TextColor::Text1, true}});
    }
    addRow(tr("Category"), {{textOf(base::categoryName(row.category))}});
    const std::string path = timeline.scopes().path(row.scope);
    if (!path.empty()) {
        addRow(tr("Scope"), {{QString::fromStdString(path)}});
    }
    addRow(tr("Address"), {{addressText(row.address) + QStringLiteral(" + ") + bytesText(row.bytes)}});
}

void PinnedPanel::addLinks(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row,
                           std::size_t index) {
    links_ = allocationLinks(timeline, index);
    std::vector<Part> made{{instantText(row.born)}};
    if (row.scope != 0 && !links_.front().name.isEmpty()) {
        made.push_back({tr("by"), TextColor::Text3});
        made.push_back({links_.front().name, TextColor::Accent, false, row.scope});
    }
    addRow(tr("Made"), made);
    std::vector<Part> used;
    QStringList all;
    for (const AllocationLink& link : links_) {
        const bool read = link.kind == AllocationLink::Kind::Read;
        if (read || link.kind == AllocationLink::Kind::Ran) {
            all << link.name;
            if (used.size() < kUsersNamed) {
                used.push_back({link.name, TextColor::Accent, false, link.scope, 0,
                                read ? tr("Reads this weight in the first step")
                                     : tr("Ran while this was alive; runs do not record who reads a tensor")});
            }
        }
    }
    if (static_cast<std::size_t>(all.size()) > used.size()) {
        used.push_back({tr("and %1 more").arg(static_cast<std::size_t>(all.size()) - used.size()), TextColor::Text3,
                        false, 0, 0, all.join(QStringLiteral(", "))});
    }
    if (!used.empty()) {
        addRow(row.category == base::MemoryCategory::Weights ? tr("Read by") : tr("Meanwhile ran"), used);
    }
    if (!livesToTheEnd(timeline, row, endOfWork(timeline))) {
        std::vector<Part> freed{{instantText(row.freed)},
                                {tr("after %1").arg(durationText(row.freed - row.born)), TextColor::Text3}};
        const AllocationLink& last = links_.back();
        if (last.scope != 0 && last.scope != row.scope && !last.name.isEmpty()) {
            freed.push_back({tr("in"), TextColor::Text3});
            freed.push_back({last.name, TextColor::Accent, false, last.scope});
        }
        addRow(tr("Freed"), freed);
    } else if (!timeline.memory().outOfMemory().empty()) {
        addRow(tr("Freed"), {{tr("never: the run stopped at %1").arg(instantText(timeline.end())), TextColor::Warn}});
    } else {
        addRow(tr("Freed"), {{tr("at the end of the run")}});
    }
    if (const auto earlier = earlierTensor(timeline, index)) {
        const profiler::AllocationRow before = timeline.memory().allocations()[earlier->row];
        QString step = earlier->step;
        step[0] = step[0].toUpper();
        const QString more = earlier->tokens > 0 ? tr("the same tensor at %1 tokens").arg(countText(earlier->tokens))
                                                 : tr("the same tensor");
        addRow(step, {{bytesText(before.bytes), TextColor::Accent, false, 0, before.id,
                       tr("The same tensor in %1, %2").arg(earlier->step, exactBytesText(before.bytes))},
                      {more, TextColor::Text3}});
    }
}

void PinnedPanel::show(const profiler::RunTimeline& timeline, std::size_t index) {
    const profiler::AllocationRow row = timeline.memory().allocations()[index];
    const Shown now{&timeline, timeline.memory().events(), row.id};
    if (now == shown_ && form_->isVisibleTo(this)) {
        return; // the focus of a link stays
    }
    shown_ = now;
    while (rows_->rowCount() > 0) {
        rows_->removeRow(0);
    }
    text_.clear();
    buttonsOfLinks_.clear();
    const QString name = shortTensorName(timeline.text(row.name));
    text_ << name;
    header_->setTitle(name);
    header_->setCategory(row.category);
    scope_ = row.scope;
    addWhere(timeline, row);
    addLinks(timeline, row, index);
    goButton_->setEnabled(timeline.scopes().find(row.scope) != nullptr);
    header_->setVisible(true);
    form_->setVisible(true);
    buttons_->setVisible(true);
    hint_->setVisible(false);
}

void PinnedPanel::clear() {
    header_->setVisible(false);
    form_->setVisible(false);
    buttons_->setVisible(false);
    hint_->setVisible(true);
    text_.clear();
    links_.clear();
}

QString PinnedPanel::asText() const {
    return text_.join(QLatin1Char('\n'));
}

void PinnedPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().panel);
    hairline(painter, 0, width(), 0, themeTokens().line1);
}

} // namespace vitrine::ui
