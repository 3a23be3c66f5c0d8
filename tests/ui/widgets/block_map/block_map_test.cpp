// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The map's tiles against the masks they show, its axes, pointer, keyboard and exports.
#include "ui/widgets/block_map/block_map.h"

#include <QApplication>
#include <QScreen>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QWheelEvent>
#include <cmath>

#include "base/error.h"
#include "tests/ui/models/mask_lab/mask_making.h"
#include "ui/widgets/block_map/block_map_frame.h"
#include "ui/widgets/block_map/block_map_lens.h"
#include "ui/widgets/block_map/block_map_paint.h"
#include "ui/widgets/block_map/block_map_tile.h"

using namespace vitrine;
using namespace vitrine::ui;

namespace {

TileScene sceneOf(MaskMapPtr map, double scale, double dpr = 1) {
    TileScene scene;
    scene.map = std::move(map);
    scene.kvScale = scene.qScale = scale;
    scene.dpr = dpr;
    scene.colors = mapColors(themeTokens());
    return scene;
}

bool settle(const BlockMap& map) {
    return QTest::qWaitFor([&] { return map.settled(); }, 60000);
}

} // namespace

class BlockMapTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        Theme::instance().install();
        Theme::instance().setMode(Theme::Mode::Dark);
    }

    void blocksAreWholePixelsAndFitTheMap() {
        const MapAxis axis(16384, 128, 645, 1);
        QCOMPARE(axis.blockPixels(), 5.0);
        QCOMPARE(axis.pixels(), 640);
        QVERIFY(axis.showsAll());
        MapAxis million(1 << 20, 128, 640, 1);
        QCOMPARE(million.pixels(), 640);
        million.setLevel(million.closest(), 500000, 320);
        QCOMPARE(million.scale(), 48.0);
        QVERIFY(std::abs(million.positionAt(320) - 500000) < 0.1);
        million.scrollTo(-50);
        QCOMPARE(million.origin(), 0);
        million.scrollTo(2e6);
        QVERIFY(std::abs(million.last() - (1 << 20)) < 0.1);
    }

    void axesAreLinkedWhenAsked() {
        MapView view = MapView::whole(4096, 4096, 128, 128, QSizeF(640, 640), 1, true);
        view.zoom(8, QPointF(100, 300));
        QCOMPARE(view.kv.scale(), view.q.scale());
        view.setLinked(false);
        const double before = view.q.scale();
        view.zoom(2, QPointF(100, 300), true, false);
        QVERIFY(view.kv.scale() > before);
        QCOMPARE(view.q.scale(), before);
        view.setLinked(true);
        QCOMPARE(view.kv.scale(), view.q.scale());
        view.zoom(1e9, QPointF(0, 0));
        QCOMPARE(view.kv.scale(), view.q.scale());
        view.zoom(1e-9, QPointF(0, 0));
        QVERIFY(view.kv.showsAll() && view.q.showsAll());
        // Four queries over many keys are still seen.
        const MapView thin = MapView::whole(4, 100000, 128, 128, QSizeF(640, 640), 1, true);
        QVERIFY(static_cast<double>(thin.q.pixels()) >= 40);
    }

    void cellsOfAnAxisCoverEveryBlockOnce_data() {
        QTest::addColumn<double>("scale");
        for (const double scale : {0.0006, 0.004, 1.0 / 128, 0.013, 5.0 / 128, 0.37, 1.0, 3.0}) {
            QTest::addRow("%g", scale) << scale;
        }
    }
    void cellsOfAnAxisCoverEveryBlockOnce() {
        QFETCH(double, scale);
        constexpr std::int64_t kLength = 100000;
        constexpr std::int64_t kBlocks = 782;
        std::vector<int> seen(kBlocks, 0);
        const auto last = static_cast<std::int64_t>(std::ceil(kLength * scale));
        for (std::int64_t begin = 0; begin < last; begin += kMapTile) {
            const AxisCells cells = axisCells(kLength, 128, scale, begin, begin + kMapTile);
            QCOMPARE(cells.edges.size(), cells.pixels.size());
            for (std::size_t i = 0; i + 1 < cells.edges.size(); ++i) {
                QVERIFY(cells.pixels[i] < cells.pixels[i + 1]);
                for (std::int64_t block = cells.edges[i]; block < cells.edges[i + 1]; ++block) {
                    // A block that is cut by tiles belongs to each; below a pixel it belongs to one.
                    seen[static_cast<std::size_t>(block)] += cells.single ? 0 : 1;
                }
            }
            if (cells.single) {
                for (std::int64_t block = cells.edges.front(); block < cells.edges.back(); ++block) {
                    seen[static_cast<std::size_t>(block)] = 1;
                }
            }
        }
        QVERIFY(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    }

    void tilesShowTheBlocks_data() {
        QTest::addColumn<double>("dpr");
        QTest::addColumn<int>("pixels");
        QTest::newRow("1x") << 1.0 << 5;
        QTest::newRow("2x") << 2.0 << 10;
        QTest::newRow("large") << 1.0 << 31;
    }
    void tilesShowTheBlocks() {
        QFETCH(double, dpr);
        QFETCH(int, pixels);
        const MaskMapPtr map = test::slidingDocument();
        const TileScene scene = sceneOf(map, pixels / 128.0, dpr);
        const auto tiles = (128 * pixels + kMapTile - 1) / kMapTile;
        for (int y = 0; y < tiles; ++y) {
            for (int x = 0; x < tiles; ++x) {
                const QImage image = mapTile(scene, x, y);
                for (int row = y * kMapTile / pixels; row < std::min(128, (y + 1) * kMapTile / pixels); ++row) {
                    for (int column = x * kMapTile / pixels; column < std::min(128, (x + 1) * kMapTile / pixels);
                         ++column) {
                        const int px = column * pixels + pixels / 2 - x * kMapTile;
                        const int py = row * pixels + pixels / 2 - y * kMapTile;
                        if (px < 0 || py < 0 || px >= kMapTile || py >= kMapTile) {
                            continue;
                        }
                        const QRgb color = image.pixel(px, py);
                        switch (blockKind(*map, row, column)) {
                        case mask_kind::kFull:
                            QCOMPARE(color, scene.colors.full.fill);
                            break;
                        case mask_kind::kPartial:
                            QVERIFY(color == scene.colors.partial.fill || color == scene.colors.partial.line);
                            break;
                        default:
                            QVERIFY(color == scene.colors.empty || color == scene.colors.grid);
                        }
                    }
                }
            }
        }
    }

    void elementTilesAreTheInterpreters() {
        const MaskMapPtr map = test::causal(300, 300);
        const TileScene scene = sceneOf(map, 3);
        const QImage image = mapTile(scene, 1, 1);
        kernels::Interpreter<float> interpreter(map->mask->program, map->mask->binding);
        for (int y = 0; y < kMapTile; y += 3) {
            for (int x = 0; x < kMapTile; x += 3) {
                const int query = (kMapTile + y) / 3;
                const int key = (kMapTile + x) / 3;
                interpreter.run({0, 0, query}, key, 1, nullptr);
                // Lines end a block; its elements keep their other pixels.
                const int px = key * 3 - kMapTile;
                const int py = query * 3 - kMapTile;
                if (px < 0 || py < 0) {
                    continue;
                }
                QCOMPARE(image.pixel(px, py),
                         interpreter.booleans()[0] != 0 ? scene.colors.full.fill : scene.colors.blockedBy[0].fill);
            }
        }
        // 300 x 3 = 900 = 3 x 256 + 132: after the mask is canvas.
        const QImage edge = mapTile(scene, 3, 3);
        QCOMPARE(edge.pixel(140, 140), scene.colors.canvas);
        QVERIFY(edge.pixel(100, 100) != scene.colors.canvas);
    }

    void smallSharesAreStillSeen() {
        // One key of a million is seen by all: a stripe of one block in 8192.
        const MaskMapPtr map = test::map(
            test::program("def sink(b, h, q_idx, kv_idx):\n    return kv_idx < 128\n", "sink"), 1 << 20, 1 << 20);
        const TileScene scene = sceneOf(map, 640.0 / (1 << 20));
        const QImage image = mapTile(scene, 0, 1);
        QVERIFY(image.pixel(0, 100) != scene.colors.empty);
        QCOMPARE(image.pixel(40, 101), scene.colors.empty);
    }

    void aDifferenceHasItsOwnColours() {
        TileScene scene = sceneOf(test::slidingDocument(), 5.0 / 128);
        scene.other = test::causal(16384, 16384);
        const QImage image = mapTile(scene, 0, 0);
        const QRgb onlyB = image.pixel(2, 20 * 5 + 2); // row 20, column 0: another document
        QVERIFY(onlyB == scene.colors.onlyB.fill || onlyB == scene.colors.onlyB.line);
        QCOMPARE(image.pixel(10 * 5 + 2, 12 * 5 + 2), scene.colors.both.fill);
    }

    void theLensCountsItsBlock() {
        const TileScene scene = sceneOf(test::slidingDocument(), 5.0 / 128);
        const LensAnswer answer = answerLens(lensQuestion(scene, 8284, 8220, 256), {});
        QCOMPARE(lensTitles(answer).front(), QStringLiteral("Row 64, column 64: partial, 4,196 of 16,384"));
        QCOMPARE(cellText(&answer, 8284, 8220), QStringLiteral("q 8,284, kv 8,220: blocked by document"));
        QCOMPARE(cellText(&answer, 8284, 8260), QStringLiteral("q 8,284, kv 8,260: allowed"));
        QCOMPARE(cellText(&answer, 8200, 8210), QStringLiteral("q 8,200, kv 8,210: blocked by causal"));
        QCOMPARE(answer.image.size(), QSize(256, 256));
        // A large block is shown in part, around the cell.
        const LensQuestion part = lensQuestion(sceneOf(test::causal(100000, 100000, 4096), 0.01), 50000, 49999, 256);
        QCOMPARE(part.rows, 256);
        QVERIFY(part.query <= 50000 && part.query + 256 > 50000);
        QVERIFY(part.key <= 49999 && part.key + 256 > 49999);
    }

    void keysMoveTheCell() {
        BlockMap map;
        map.resize(688, 777);
        map.setMaps(test::slidingDocument(), nullptr);
        QSignalSpy pinned(&map, &BlockMap::cellPinned);
        QSignalSpy blocks(&map, &BlockMap::blockChanged);
        map.goTo({8284, 8220}, false);
        QCOMPARE(blocks.size(), 1);
        QCOMPARE(blocks[0][0].toLongLong(), 64);
        QTest::keyClick(&map, Qt::Key_Right);
        QCOMPARE(*map.cell(), (MaskCell{8284, 8348})); // a block, as blocks are seen
        QTest::keyClick(&map, Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(*map.cell(), (MaskCell{8283, 8348}));
        QTest::keyClick(&map, Qt::Key_Return);
        QVERIFY(map.pinned());
        QCOMPARE(pinned.size(), 1);
        QTest::keyClick(&map, Qt::Key_Escape);
        QVERIFY(!map.pinned());
        QVERIFY(map.cell());
        const double before = map.pixelsPerToken();
        for (int i = 0; i < 20; ++i) {
            QTest::keyClick(&map, Qt::Key_Plus);
        }
        QVERIFY(map.pixelsPerToken() > before);
        const MaskRange range = map.visible();
        QVERIFY(range.q0 <= 8283 && range.q1 > 8283 && range.kv0 <= 8348 && range.kv1 > 8348);
        QTest::keyClick(&map, Qt::Key_Right);
        QCOMPARE(*map.cell(), (MaskCell{8283, 8349})); // an element, as elements are seen
        QTest::keyClick(&map, Qt::Key_Home);
        QCOMPARE(map.pixelsPerToken(), before);
        map.goTo({0, 0}, false);
        QTest::keyClick(&map, Qt::Key_Left);
        QCOMPARE(*map.cell(), (MaskCell{0, 0}));
        QVERIFY(settle(map));
        QCOMPARE(map.spoken(), QStringLiteral("q 0, kv 0: allowed"));
    }

    void thePointerZoomsPansAndPins() {
        BlockMap map;
        map.resize(688, 777);
        map.setMaps(test::slidingDocument(), nullptr);
        map.show();
        QVERIFY(QTest::qWaitForWindowExposed(&map));
        QVERIFY(settle(map));
        const QPoint at(200, 300);
        QTest::mouseMove(&map, at);
        QVERIFY(map.cell());
        const MaskCell cell = *map.cell();
        QWheelEvent wheel(at, map.mapToGlobal(at), {}, QPoint(0, 120 * 12), Qt::NoButton, Qt::NoModifier,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(&map, &wheel);
        QVERIFY(map.pixelsPerToken() > 0.3);
        QVERIFY(std::abs(static_cast<double>(map.cell()->q - cell.q)) < 30); // the place under the pointer stays
        QVERIFY(std::abs(static_cast<double>(map.cell()->kv - cell.kv)) < 30);
        const MaskRange before = map.visible();
        QTest::mousePress(&map, Qt::LeftButton, {}, at);
        QTest::mouseMove(&map, at + QPoint(-50, -20));
        QTest::mouseRelease(&map, Qt::LeftButton, {}, at + QPoint(-50, -20));
        QVERIFY(map.visible().kv0 > before.kv0 && map.visible().q0 > before.q0);
        QVERIFY(!map.pinned());
        QTest::mouseClick(&map, Qt::LeftButton, {}, at);
        QVERIFY(map.pinned());
        const MaskCell pinned = *map.cell();
        QTest::mouseMove(&map, QPoint(250, 500));
        QCOMPARE(*map.cell(), pinned);
        map.unpin();
        QVERIFY(!map.pinned());
        map.showAll();
        QTest::mousePress(&map, Qt::LeftButton, Qt::ShiftModifier, QPoint(100, 100));
        QTest::mouseMove(&map, QPoint(180, 180));
        QTest::mouseRelease(&map, Qt::LeftButton, Qt::ShiftModifier, QPoint(180, 180));
        QVERIFY(map.pixelsPerToken() > 0.2);
        QVERIFY(settle(map));
    }

    void flippingSidesKeepsTheRange() {
        BlockMap map;
        map.resize(600, 700);
        map.setMaps(test::slidingDocument(), test::causal(16384, 16384));
        map.showRange({4000, 5000, 4000, 5000});
        const MaskRange range = map.visible();
        map.setSide(BlockMap::Side::B);
        QCOMPARE(map.visible(), range);
        map.setSide(BlockMap::Side::Difference);
        QCOMPARE(map.visible(), range);
        QVERIFY(settle(map));
        map.setMaps(test::slidingDocument(), test::causal(16384, 16384, 64));
        QVERIFY(settle(map)); // nothing to compare: said, not drawn
        map.setMaps(nullptr, nullptr);
        QVERIFY(settle(map));
        QCOMPARE(map.grab().size(), QSize(600, 700));
        QTest::keyClick(&map, Qt::Key_Right);
        QVERIFY(!map.cell());
    }

    void everyLengthIsDrawn_data() {
        QTest::addColumn<int>("queries");
        QTest::addColumn<int>("keys");
        QTest::addColumn<int>("block");
        QTest::newRow("one element") << 1 << 1 << 128;
        QTest::newRow("decode") << 1 << 100000 << 128;
        QTest::newRow("one key") << 5000 << 1 << 64;
        QTest::newRow("no multiple") << 300 << 500 << 128;
        QTest::newRow("blocks of one") << 77 << 33 << 1;
        QTest::newRow("huge") << (1 << 29) << (1 << 29) << (1 << 16);
    }
    void everyLengthIsDrawn() {
        QFETCH(int, queries);
        QFETCH(int, keys);
        QFETCH(int, block);
        BlockMap map;
        map.resize(500, 500);
        map.setMaps(test::causal(queries, keys, block), nullptr);
        for (int i = 0; i < 3; ++i) {
            map.goTo({queries / 2, keys / 2}, true);
            QVERIFY(!map.picture(1).isNull());
            map.zoomBy(1000);
        }
        QVERIFY(settle(map));
        QVERIFY(map.pixelsPerToken() >= 1);
    }

    void picturesHaveTheirSizeAndContent() {
        BlockMap map;
        map.resize(688, 777);
        map.setMaps(test::slidingDocument(), nullptr);
        const QImage once = map.picture(1);
        const QImage twice = map.picture(2);
        QCOMPARE(twice.size(), once.size() * 2);
        const QRgb full = mapColors(themeTokens()).full.fill;
        const auto share = [full](const QImage& image) {
            std::int64_t found = 0;
            for (int y = 0; y < image.height() * 2 / 3; ++y) {
                for (int x = 0; x < image.width(); ++x) {
                    found += image.pixel(x, y) == full ? 1 : 0;
                }
            }
            return static_cast<double>(found) / image.width() / image.height();
        };
        QVERIFY(share(once) > 0.01);
        QVERIFY(share(twice) > share(once)); // the gaps between blocks stay one pixel
        QTemporaryDir folder;
        map.savePng(folder.filePath(QStringLiteral("map.png")), 2);
        QCOMPARE(QImage(folder.filePath(QStringLiteral("map.png"))).size(), twice.size());
        map.saveSvg(folder.filePath(QStringLiteral("map.svg")));
        QFile file(folder.filePath(QStringLiteral("map.svg")));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll();
        QVERIFY(text.contains("<svg") && text.contains("full 954"));
        QVERIFY(text.contains(QColor(full).name().toLatin1()));
        QVERIFY(!text.contains("<image")); // shapes; with a lens also its picture
        map.goTo({8284, 8220}, true);
        QVERIFY(map.svg().contains("4,196 of 16,384"));
        QVERIFY_EXCEPTION_THROWN(map.savePng(QStringLiteral("/nowhere/at/all.png"), 1), base::BadInput);
    }

    void aRenderingIsWhole() {
        BlockMap map;
        map.resize(688, 777);
        map.setMaps(test::slidingDocument(), nullptr);
        const QImage shown = map.grab().toImage(); // before any worker could answer
        const QRgb full = mapColors(themeTokens()).full.fill;
        int found = 0;
        for (int y = 0; y < 600; ++y) {
            for (int x = 0; x < shown.width(); ++x) {
                found += shown.pixel(x, y) == full ? 1 : 0;
            }
        }
        QVERIFY2(found >= 954 * 9, qPrintable(QString::number(found)));
    }

    void paintingComputesNothing() {
        BlockMap map;
        map.resize(688, 777);
        map.show();
        QVERIFY(QTest::qWaitForWindowExposed(&map));
        const QRgb full = mapColors(themeTokens()).full.fill;
        const auto blueOnScreen = [&] {
            const QImage seen = map.screen()->grabWindow(map.winId()).toImage();
            int found = 0;
            for (int y = 0; y < 600; ++y) { // above the column load, which needs no tile
                for (int x = 0; x < seen.width(); ++x) {
                    found += seen.pixel(x, y) == full ? 1 : 0;
                }
            }
            return found;
        };
        map.setMaps(test::slidingDocument(), nullptr);
        map.repaint(); // answers of workers wait for the event loop
        QCOMPARE(blueOnScreen(), 0);
        QVERIFY(!map.settled());
        QVERIFY(settle(map));
        map.repaint();
        QVERIFY(blueOnScreen() >= 954 * 9);
    }

    void colourScalesFollowTheTheme() {
        for (const Theme::Mode mode : {Theme::Mode::Light, Theme::Mode::Dark}) {
            Theme::instance().setMode(mode);
            const MapColors colors = mapColors(themeTokens());
            QVERIFY(contrastRatio(QColor(colors.full.fill), QColor(colors.empty)) > 2.5);
            const HeatScale plain{-2, 2, false};
            QVERIFY(heatColor(colors, plain, -2) != heatColor(colors, plain, 2));
            QCOMPARE(heatColor(colors, plain, -9), heatColor(colors, plain, -2));
            const HeatScale both{-2, 2, true};
            QCOMPARE(heatColor(colors, both, 2), colors.heatHigh);
            QCOMPARE(heatColor(colors, both, -2), colors.heatNegative);
            QCOMPARE(heatColor(colors, both, std::nanf("")), colors.bad);
        }
    }
};

QTEST_MAIN(BlockMapTest)
#include "block_map_test.moc"
