select * from shop.orders
