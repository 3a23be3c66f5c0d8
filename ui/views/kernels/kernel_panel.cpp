// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/kernel_panel.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/kernel_roofline.h"

namespace vitrine::ui {

namespace {

constexpr int kValueWidth = 196;

FlatNode factRow(const QString& name, const QString& value, const QString& tip = {}) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value)};
    node.cells[1].tip = tip.isEmpty() ? value : tip;
    return node;
}

std::shared_ptr<FlatTree> factTree(const QString& title) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{title, false}, {QString(), true}};
    return tree;
}

} // namespace

KernelPanel::KernelPanel(QWidget* parent) : QScrollArea(parent) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    header_ = new DockHeader(tr("Kernel"));
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    name_ = new TextLabel({}, TypeRole::Body, TextColor::Text1, true, content);
    name_->setContentsMargins(12, 10, 12, 10);
    name_->setElide(true);
    name_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    hint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    hint_->setContentsMargins(12, 10, 12, 10);
    hint_->setWordWrap(true);
    column->addWidget(name_);
    column->addWidget(hint_);
    variant_ = new FactTable(tr("Variant"), content);
    time_ = new FactTable(tr("Time"), content);
    work_ = new FactTable(tr("Work"), content);
    launch_ = new FactTable(tr("Launch"), content);
    rooflineHead_ = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, content);
    rooflineHead_->setFixedHeight(25);
    auto* head = new QHBoxLayout(rooflineHead_);
    head->setContentsMargins(12, 0, 12, 0);
    head->addWidget(new TextLabel(tr("Roofline"), TypeRole::Axis, TextColor::Text2, false, rooflineHead_));
    roofline_ = new KernelRoofline(tr("Roofline of the run's kernels"), content);
    for (FactTable* table : {variant_, time_, work_}) {
        table->setNumberWidth(kValueWidth);
        column->addWidget(table);
    }
    column->addWidget(rooflineHead_);
    column->addWidget(roofline_);
    launch_->setNumberWidth(kValueWidth);
    column->addWidget(launch_);
    column->addStretch(1);
    setWidget(content);
    connect(roofline_, &KernelRoofline::dotChosen, this, &KernelPanel::kernelChosen);
    connect(roofline_, &PlotWidget::readoutChanged, this, &KernelPanel::readoutChanged);
    refresh();
}

void KernelPanel::setStats(KernelStatsPtr stats) {
    stats_ = std::move(stats);
    roofline_->setDots(stats_ ? stats_->dots : std::vector<RooflineDot>(), stats_ ? stats_->ceilings : Ceilings());
    refresh();
}

void KernelPanel::setVariants(VariantListPtr variants) {
    variants_ = std::move(variants);
    refresh();
}

void KernelPanel::setShapes(std::map<std::string, LaunchShape> shapes) {
    shapes_ = std::move(shapes);
    refresh();
}

void KernelPanel::setScope(std::optional<ScopeFacts> scope) {
    if (scope || scope_) {
        scope_ = std::move(scope);
        refresh();
    }
}

void KernelPanel::setKernel(const QString& name) {
    if (wanted_ != name || scope_) {
        wanted_ = name;
        scope_.reset();
        refresh();
    }
}

QString KernelPanel::kernel() const {
    if (!stats_ || stats_->table.kernels.empty()) {
        return {};
    }
    if (!wanted_.isEmpty() && kernelNamed(stats_->table, wanted_.toStdString())) {
        return wanted_;
    }
    return textOf(stats_->table.kernels.front().name);
}

FlatTreePtr KernelPanel::variantFacts(const UsedVariant* variant) const {
    auto tree = factTree(tr("Variant"));
    if (variant == nullptr) {
        tree->nodes = {factRow(tr("variant"), tr("of a library"),
                               tr("No kernel pack of this run holds it: cuBLASLt chose it itself."))};
        return tree;
    }
    const VariantUse most = variant->heaviest();
    tree->nodes = {factRow(tr("family"), variant->family), factRow(tr("variant"), variant->variant),
                   factRow(tr("pack"), tr("%1, %2").arg(variant->pack, variant->arch)), factRow(tr("why"), most.reason),
                   factRow(tr("from"), most.origin)};
    return tree;
}

FlatTreePtr KernelPanel::timeFacts(const profiler::KernelRow& row) const {
    auto tree = factTree(tr("Time"));
    tree->nodes = {
        factRow(tr("total"), durationText(row.total)), factRow(tr("share of all kernels"), shareText(row.share)),
        factRow(tr("calls"), countText(static_cast<std::int64_t>(row.launches))),
        factRow(tr("mean"), durationText(static_cast<base::TimeNs>(row.mean()))),
        factRow(tr("shortest, longest"), tr("%1, %2").arg(durationText(row.shortest), durationText(row.longest)))};
    return tree;
}

FlatTreePtr KernelPanel::workFacts(const profiler::KernelRow& row) const {
    auto tree = factTree(tr("Work"));
    const QString op = row.op.empty() ? tr("outside of ops") : textOf(row.op);
    tree->nodes.push_back(factRow(tr("op"), op));
    if (row.bytes == 0) {
        tree->nodes.push_back(factRow(tr("bytes"), unknownText(),
                                      tr("Its op launches several kernels: what each of them moves is not known.")));
        return tree;
    }
    tree->nodes.push_back(factRow(tr("bytes a call"), bytesText(row.bytes / std::max<std::uint64_t>(1, row.launches)),
                                  exactBytesText(row.bytes)));
    tree->nodes.push_back(factRow(tr("bandwidth"), rateText(row.bytesPerSecond())));
    tree->nodes.push_back(factRow(tr("arithmetic"), flopRateText(row.flopsPerSecond())));
    if (const auto part = stats_->ceilings.share(row.bytes, row.flops, row.total)) {
        tree->nodes.push_back(factRow(tr("of roofline"), shareText(*part)));
    }
    return tree;
}

FlatTreePtr KernelPanel::launchFacts(const std::string& name, const UsedVariant* variant) const {
    auto tree = factTree(tr("Launch"));
    const auto shape = shapes_.find(name);
    const bool known = shape != shapes_.end();
    const VariantUse most = variant != nullptr ? variant->heaviest() : VariantUse();
    if (known) {
        const LaunchShape& first = shape->second;
        const QString tip = first.same ? QString() : tr("Of the first launch; others differ.");
        tree->nodes.push_back(factRow(first.same ? tr("grid") : tr("grid, first"), first.grid, tip));
        tree->nodes.push_back(factRow(tr("block"), first.block, tip));
        if (!first.cluster.isEmpty()) {
            tree->nodes.push_back(factRow(tr("cluster"), first.cluster, tip));
        }
    }
    if (!known && variant == nullptr) {
        return tree;
    }
    const int registers = known ? shape->second.registers : most.registers;
    tree->nodes.push_back(factRow(tr("registers"), QString::number(registers)));
    const std::uint64_t shared = known ? shape->second.sharedBytes : most.sharedBytes;
    tree->nodes.push_back(
        factRow(tr("shared memory"), shared > 0 ? bytesText(shared) : QStringLiteral("0"), exactBytesText(shared)));
    if (variant != nullptr) {
        tree->nodes.push_back(factRow(
            tr("spills"), most.spillBytes > 0 ? bytesText(static_cast<std::uint64_t>(most.spillBytes)) : tr("none")));
        tree->nodes.push_back(factRow(tr("cubin"), bytesText(most.cubinBytes), exactBytesText(most.cubinBytes)));
    } else {
        tree->nodes.push_back(factRow(tr("local memory"),
                                      shape->second.localBytes > 0 ? bytesText(shape->second.localBytes) : tr("none")));
    }
    return tree;
}

FlatTreePtr KernelPanel::timeFacts(const ScopeFacts& scope) const {
    auto tree = factTree(tr("Time"));
    tree->nodes = {factRow(tr("from"), instantText(scope.time.begin)),
                   factRow(tr("duration"), durationText(scope.time.length()))};
    if (!scope.place.isEmpty()) {
        tree->nodes.insert(tree->nodes.begin(), factRow(tr("in"), scope.place));
    }
    if (scope.kernels > 0) {
        tree->nodes.push_back(factRow(
            tr("kernels"),
            tr("%1, %2 together").arg(countText(static_cast<qint64>(scope.kernels)), durationText(scope.kernelTime))));
    } else {
        tree->nodes.push_back(factRow(tr("kernels"), tr("none recorded")));
    }
    return tree;
}

FlatTreePtr KernelPanel::workFacts(const ScopeFacts& scope) const {
    auto tree = factTree(tr("Work"));
    if (scope.bytes == 0 && scope.flops == 0) {
        return tree;
    }
    const double seconds = static_cast<double>(scope.time.length()) * 1e-9;
    const auto rate = [&](std::uint64_t amount) { return seconds > 0 ? static_cast<double>(amount) / seconds : 0; };
    tree->nodes = {factRow(tr("bytes"), bytesText(scope.bytes), exactBytesText(scope.bytes)),
                   factRow(tr("bandwidth"), rateText(rate(scope.bytes))),
                   factRow(tr("arithmetic"), flopRateText(rate(scope.flops)))};
    if (const auto part =
            stats_ ? stats_->ceilings.share(scope.bytes, scope.flops, scope.time.length()) : std::optional<double>()) {
        tree->nodes.push_back(factRow(tr("of roofline"), shareText(*part)));
    }
    return tree;
}

void KernelPanel::showScope(const ScopeFacts& scope) {
    header_->setTitle(tr("Scope"));
    name_->setText(scope.name);
    name_->setToolTip(scope.name);
    time_->setTable(timeFacts(scope));
    const FlatTreePtr work = workFacts(scope);
    work_->setTable(work);
    const bool dots = stats_ && !stats_->dots.empty();
    for (QWidget* part : std::initializer_list<QWidget*>{name_, time_}) {
        part->show();
    }
    for (QWidget* part : std::initializer_list<QWidget*>{variant_, launch_, hint_}) {
        part->hide();
    }
    work_->setVisible(!work->nodes.empty());
    rooflineHead_->setVisible(dots);
    roofline_->setVisible(dots);
    roofline_->setChosen(scope.name);
}

void KernelPanel::refresh() {
    if (scope_) {
        showScope(*scope_);
        return;
    }
    header_->setTitle(tr("Kernel"));
    const QString name = kernel();
    const auto row = stats_ ? kernelNamed(stats_->table, name.toStdString()) : std::nullopt;
    name_->setText(name);
    name_->setToolTip(name);
    for (QWidget* part :
         std::initializer_list<QWidget*>{name_, variant_, time_, work_, launch_, rooflineHead_, roofline_}) {
        part->setVisible(row.has_value());
    }
    hint_->setVisible(!row);
    hint_->setText(stats_ ? tr("This run recorded no kernels. Choose a step, a layer or an op in the trace.")
                          : QString());
    if (!row) {
        return;
    }
    const UsedVariant* variant = variants_ ? variants_->withEntry(name.toStdString()) : nullptr;
    variant_->setTable(variantFacts(variant));
    time_->setTable(timeFacts(*row));
    work_->setTable(workFacts(*row));
    const FlatTreePtr launch = launchFacts(name.toStdString(), variant);
    launch_->setVisible(!launch->nodes.empty());
    launch_->setTable(launch);
    // Where only its op's work is known, the op has the dot.
    const bool own = std::ranges::any_of(stats_->dots, [&name](const RooflineDot& dot) { return dot.name == name; });
    roofline_->setChosen(own ? name : textOf(row->op));
}

QString KernelPanel::asText() const {
    QStringList parts{name()};
    for (const FactTable* table : {variant_, time_, work_, launch_}) {
        if (table->isVisibleTo(this)) {
            parts << table->asText();
        }
    }
    return parts.join(QLatin1Char('\n'));
}

} // namespace vitrine::ui
