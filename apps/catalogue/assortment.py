"""What the demo's shop sells: twelve categories, and for each thing its prices in whole euros, its materials and its uses."""

from dataclasses import dataclass

# Names of product lines; every thing may come in each.
LINES = (
    "Alder", "Basalt", "Brook", "Cinder", "Cove", "Dune", "Ember", "Fjord", "Flint", "Gale", "Harbour", "Heath",
    "Inlet", "Juniper", "Lagoon", "Larch", "Lichen", "Loam", "Marsh", "Meadow", "Moor", "Orchard", "Pebble", "Quarry",
    "Reed", "Ridge", "Shoal", "Slate", "Spruce", "Thicket", "Tide", "Tundra",
)  # fmt: skip


@dataclass(frozen=True)
class Thing:
    name: str
    lowest: int
    highest: int
    materials: tuple[str, ...]
    uses: tuple[str, ...]


@dataclass(frozen=True)
class Range:
    """A category. The SKUs of its products begin with the prefix."""

    prefix: str
    name: str
    supplier: str
    things: tuple[Thing, ...]

    @property
    def slug(self) -> str:
        return self.name.lower()


RANGES = (
    Range("LMP", "Lamps", "orders@northlight.example.org", (
        Thing("desk lamp", 29, 119, ("brass", "oak", "powder-coated steel"), ("long evenings at a desk", "small desks")),
        Thing("floor lamp", 69, 249, ("linen", "brass", "ash"), ("warm light beside a sofa", "dark corners")),
        Thing("pendant lamp", 49, 299, ("frosted glass", "rattan", "spun copper"), ("dinner tables", "high ceilings")),
        Thing("wall lamp", 35, 129, ("opal glass", "blackened steel"), ("hallways", "reading in bed")),
    )),
    Range("DSK", "Desks", "orders@fjordwood.example.org", (
        Thing("writing desk", 149, 499, ("oak", "walnut", "birch plywood"), ("letters and a laptop", "small rooms")),
        Thing("standing desk", 299, 899, ("bamboo", "white laminate"), ("tired backs", "two screens and a cup of tea")),
        Thing("corner desk", 199, 649, ("oak veneer", "grey laminate"), ("work that spreads out", "awkward corners")),
        Thing("secretary", 249, 799, ("walnut", "cherry wood"), ("living rooms", "papers that should be out of sight")),
    )),
    Range("CHR", "Chairs", "trade@softseat.example.org", (
        Thing("dining chair", 59, 229, ("beech", "moulded oak", "recycled plastic"), ("long dinners", "daily use")),
        Thing("office chair", 129, 699, ("mesh", "wool felt", "leather"), ("a day of sitting well", "home offices")),
        Thing("armchair", 199, 899, ("boucle", "leather", "velvet"), ("good books", "the place by the window")),
        Thing("bar stool", 49, 189, ("ash", "black steel"), ("kitchen counters", "late talks")),
    )),
    Range("SHF", "Shelves", "orders@fjordwood.example.org", (
        Thing("bookcase", 89, 599, ("pine", "oak", "white lacquer"), ("heavy books", "whole walls")),
        Thing("wall shelf", 19, 119, ("oak", "bamboo", "steel"), ("plants and picture frames", "spices")),
        Thing("shoe rack", 29, 99, ("bamboo", "steel"), ("narrow hallways", "a family of five")),
        Thing("room divider", 149, 449, ("pine", "cane"), ("lofts", "a desk in the bedroom")),
    )),
    Range("SOF", "Sofas", "trade@softseat.example.org", (
        Thing("two-seat sofa", 399, 1299, ("boucle", "cotton canvas"), ("small living rooms", "two and a cat")),
        Thing("three-seat sofa", 549, 1899, ("velvet", "leather", "wool"), ("Sunday afternoons", "families with a dog")),
        Thing("sofa bed", 449, 1499, ("cotton canvas", "corduroy"), ("guests who stay the night", "studio flats")),
        Thing("footstool", 79, 299, ("boucle", "leather"), ("tired feet", "one guest more")),
    )),
    Range("BED", "Beds", "sales@quietnight.example.org", (
        Thing("double bed", 299, 1199, ("oak", "pine", "upholstered linen"), ("quiet nights", "sloping roofs")),
        Thing("single bed", 149, 549, ("pine", "birch"), ("children who grow", "guest rooms")),
        Thing("mattress", 149, 999, ("natural latex", "cold foam", "pocket springs"), ("light sleepers", "every side")),
        Thing("bedside table", 39, 189, ("oak", "walnut"), ("a lamp and three books", "narrow gaps")),
    )),
    Range("RUG", "Rugs", "orders@weaversyard.example.org", (
        Thing("rug", 89, 699, ("new wool", "jute", "cotton"), ("cold floors", "rooms that echo")),
        Thing("runner", 39, 199, ("jute", "cotton"), ("hallways", "the way from the bed to the door")),
        Thing("round rug", 59, 349, ("new wool", "seagrass"), ("breakfast tables", "reading corners")),
        Thing("outdoor rug", 29, 159, ("recycled polyester",), ("balconies", "bare feet on stone")),
    )),
    Range("KIT", "Kitchen", "trade@hearthware.example.org", (
        Thing("saucepan", 25, 139, ("stainless steel", "copper"), ("every stove, induction too", "first kitchens")),
        Thing("frying pan", 29, 159, ("cast iron", "carbon steel"), ("pancakes", "people who cook each day")),
        Thing("chef's knife", 35, 199, ("carbon steel", "damask steel"), ("herbs and hard squash", "steady hands")),
        Thing("chopping board", 15, 69, ("olive wood", "beech", "walnut"), ("bread", "small worktops")),
    )),
    Range("TBW", "Tableware", "trade@hearthware.example.org", (
        Thing("dinner plate", 9, 39, ("stoneware", "porcelain"), ("the feast and the dishwasher", "daily use")),
        Thing("soup bowl", 8, 35, ("stoneware", "porcelain"), ("winter evenings", "noodles")),
        Thing("mug", 7, 25, ("enamel", "stoneware"), ("breakfast outside", "a lot of tea")),
        Thing("water glass", 4, 19, ("recycled glass", "borosilicate glass"), ("every table", "hot drinks as well")),
    )),
    Range("TXT", "Textiles", "orders@weaversyard.example.org", (
        Thing("duvet cover", 39, 149, ("percale cotton", "washed linen"), ("warm summers", "guest rooms")),
        Thing("bath towel", 12, 49, ("terry cotton", "waffle cotton"), ("the family bathroom", "the beach")),
        Thing("cushion", 15, 69, ("velvet", "washed linen", "lambswool"), ("sofas that need some colour", "benches")),
        Thing("curtain", 25, 119, ("cotton voile", "blackout linen"), ("late risers", "tall windows")),
    )),
    Range("GDN", "Garden", "hello@sunnywall.example.org", (
        Thing("garden bench", 89, 399, ("teak", "acacia", "cast aluminium"), ("the sunny wall", "three neighbours")),
        Thing("plant pot", 7, 79, ("terracotta", "glazed clay", "fibre concrete"), ("herbs by the door", "olive trees")),
        Thing("watering can", 15, 59, ("galvanised steel", "recycled plastic"), ("dry summers", "window boxes")),
        Thing("folding table", 49, 199, ("acacia", "powder-coated steel"), ("balconies of two square metres", "picnics")),
    )),
    Range("STO", "Storage", "orders@fjordwood.example.org", (
        Thing("storage basket", 12, 59, ("seagrass", "willow", "felt"), ("toys at the end of the day", "firewood")),
        Thing("chest of drawers", 129, 549, ("birch", "oak"), ("bedrooms without a wardrobe", "folded things")),
        Thing("coat stand", 39, 149, ("ash", "black steel"), ("winter coats", "offices")),
        Thing("lidded box", 6, 39, ("recycled cardboard", "birch plywood"), ("cables that nobody sorts", "letters")),
    )),
)  # fmt: skip
