// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/run/fit_line.h"

#include <QDateTime>
#include <QDirIterator>
#include <QFileInfo>
#include <QPushButton>
#include <QVBoxLayout>

#include "base/trace.h"
#include "ui/models/common/format.h"
#include "ui/models/run/run_price.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/budget_bar.h"

namespace vitrine::ui {

namespace {

constexpr int kDelayMs = 150;
constexpr std::uint64_t kGib = 1ULL << 30;

/// "17.4 of 80.0 GiB", one decimal: it is an estimate. Small models are said in their own unit.
QString roughly(std::uint64_t peak, std::uint64_t budget) {
    const auto gib = [](std::uint64_t bytes) {
        return QString::number(static_cast<double>(bytes) / static_cast<double>(kGib), 'f', 1);
    };
    const QString all = FitLine::tr("%1 GiB").arg(gib(budget));
    return peak >= kGib / 10 ? FitLine::tr("%1 of %2").arg(gib(peak), all)
                             : FitLine::tr("%1 of %2").arg(bytesText(peak), all);
}

/// What a run makes of an answer that the model has no room for. A plan prices the whole of it.
QString contextText(const RunPrice& price) {
    const QString context = countText(static_cast<qint64>(price.context));
    const std::uint64_t room = price.newTokens - price.cutTokens;
    return room == 0 ? FitLine::tr("the prompt leaves no room in the model's context of %1 tokens").arg(context)
                     : FitLine::tr("a run ends after %1 of %2 new tokens, at the model's context of %3")
                           .arg(countText(static_cast<qint64>(room)), countText(static_cast<qint64>(price.newTokens)),
                                context);
}

/// A file or a folder with its files, each with its size and when it was written; nothing of what is no path.
QString stampOf(const QString& path) {
    const QFileInfo file(path);
    QFileInfoList parts{file};
    if (file.isDir()) {
        constexpr qsizetype kMostFiles = 1000; // of a model; a prompt that reads as a large folder holds nobody up
        QDirIterator next(file.filePath(), QDir::Files);
        while (next.hasNext() && parts.size() <= kMostFiles) {
            next.next();
            parts.push_back(next.fileInfo());
        }
    }
    QString stamp;
    for (const QFileInfo& part : parts) {
        if (part.exists()) {
            stamp += QStringLiteral("\n%1 %2 %3")
                         .arg(part.filePath())
                         .arg(part.size())
                         .arg(part.lastModified().toMSecsSinceEpoch());
        }
    }
    return stamp;
}

/// All that a price depends on. To price a batch is to plan all of its steps, which may take half a minute.
QString pricedInputs(const std::string& experiment) {
    QString inputs = textOf(experiment);
    for (const std::string& text : namedTexts(experiment)) {
        inputs += stampOf(textOf(text));
    }
    return inputs;
}

} // namespace

FitLine::FitLine(RunController* runs, std::function<std::string()> experiment, QWidget* parent)
    : QObject(parent), runs_(runs), experiment_(std::move(experiment)) {
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, parent);
    sentence_->setElide(true);
    why_ = new QPushButton(tr("Why"), parent);
    why_->setCheckable(true);
    why_->setToolTip(tr("What the run would hold at its peak"));
    setControlHeight(why_, 24);
    details_ = new QWidget(parent);
    auto* column = new QVBoxLayout(details_);
    column->setContentsMargins(12, 0, 12, 0);
    column->setSpacing(4);
    bar_ = new BudgetBar(true, details_);
    QSizePolicy kept = bar_->sizePolicy();
    kept.setRetainSizeWhenHidden(true); // the form does not jump when a price comes
    bar_->setSizePolicy(kept);
    parts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, details_);
    parts_->setWordWrap(true);
    parts_->setContentsMargins(0, 4, 0, 4);
    column->addWidget(bar_);
    column->addWidget(parts_);
    timer_.setSingleShot(true);
    timer_.setInterval(kDelayMs);
    connect(&timer_, &QTimer::timeout, this, &FitLine::price);
    connect(why_, &QPushButton::toggled, this, &FitLine::showDetails);
    connect(&Theme::instance(), &Theme::changed, this, [this] {
        if (priced_) {
            showPrice(); // the parts of the bar keep their colours
        }
    });
    if (runs_ != nullptr) {
        connect(runs_, &RunController::priced, this, &FitLine::take);
    }
    sayNothing({});
}

void FitLine::price() {
    const std::string wanted = experiment_();
    if (runs_ == nullptr || wanted.empty()) {
        ticket_ = 0;
        waiting_ = false;
        sayNothing({});
        return;
    }
    const QString asked = pricedInputs(wanted);
    if (priced_ && !waiting_ && asked == asked_) {
        return;
    }
    asked_ = asked;
    ticket_ = runs_->price(wanted);
    waiting_ = true;
}

void FitLine::sayNothing(const QString& error) {
    sentence_->setText(error.isEmpty() ? QString() : tr("no price: %1").arg(error));
    sentence_->setToolTip(error);
    sentence_->setColor(TextColor::Text3);
    priced_ = false;
    lastPrice_.clear();
    parts_->setText({});
    showDetails();
}

void FitLine::take(quint64 ticket, const QString& metrics, const QString& error) {
    if (waiting_ && ticket > ticket_ && sentence_->isVisible()) { // somebody's later question has replaced this one
        price();
        return;
    }
    if (ticket != ticket_ || ticket == 0) {
        return;
    }
    waiting_ = false;
    lastPrice_ = error.isEmpty() ? metrics : QString();
    if (lastPrice_.isEmpty()) {
        sayNothing(error);
    } else {
        showPrice();
    }
}

void FitLine::showPrice() {
    const std::optional<RunPrice> price = runPrice(lastPrice_.toStdString());
    if (!price) {
        sayNothing({});
        return;
    }
    const QString memory = price->fits ? tr("fits: %1").arg(roughly(price->peak, price->budget))
                                       : tr("Will not fit by %1.").arg(bytesText(price->missing));
    sentence_->setText(price->cutTokens > 0 ? tr("%1; %2").arg(memory, contextText(*price)) : memory);
    sentence_->setColor(price->fits && price->cutTokens == 0 ? TextColor::Text2 : TextColor::Warn);
    sentence_->setToolTip(price->cutTokens > 0 ? contextText(*price) : exactBytesText(price->peak));
    std::vector<BudgetShare> parts;
    QStringList lines;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        if (const std::uint64_t bytes = price->peakByCategory[static_cast<std::size_t>(i)]; bytes > 0) {
            parts.push_back({textOf(base::categoryName(category)), bytes, themeTokens().category(category)});
            lines << tr("%1 %2").arg(textOf(base::categoryName(category)), bytesText(bytes));
        }
    }
    bar_->set(std::move(parts), price->budget, price->missing, tr("missing"));
    parts_->setText(
        tr("At the peak: %1. Priced for %2%3.")
            .arg(lines.join(QStringLiteral(", ")), price->device.isEmpty() ? tr("the device") : price->device,
                 price->newTokens > 0 ? tr(" and all %1 new tokens; a stop token would end the answer earlier")
                                            .arg(countText(static_cast<qint64>(price->newTokens)))
                                      : QString()));
    priced_ = true;
    showDetails();
}

void FitLine::showDetails() {
    why_->setVisible(priced_);
    bar_->setVisible(priced_);
    parts_->setVisible(priced_ && why_->isChecked());
}

} // namespace vitrine::ui
